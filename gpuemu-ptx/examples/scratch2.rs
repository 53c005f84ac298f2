//! Scratch.
use gpuemu_ptx::{flow::Liveness, metrics::*, program::*};
use std::time::{Duration, Instant};
fn main() {
    let text: String = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let p = Program::read(&text).unwrap();
    for _ in 0..4 {
        let (mut a, mut b, mut c, mut d, mut e, mut f) =
            (Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for (id, g) in p.entries() {
            let t = Instant::now();
            let uses = Uses::new(g);
            a += t.elapsed();
            let t = Instant::now();
            let l = Liveness::new(&g.flow, g);
            b += t.elapsed();
            let t = Instant::now();
            let v = Variances::new(&p, id, &uses, &l);
            c += t.elapsed();
            std::hint::black_box(v.branches().len());
            let t = Instant::now();
            std::hint::black_box(wrapping_products(&p, id, &uses));
            d += t.elapsed();
            let t = Instant::now();
            std::hint::black_box(accesses(&p, id));
            e += t.elapsed();
            let t = Instant::now();
            std::hint::black_box(measure(&p, id));
            f += t.elapsed();
        }
        let n: usize = p.functions.iter().map(|f| f.instructions.len()).sum();
        println!("n {n} uses {a:?} live {b:?} var {c:?} wrap {d:?} acc {e:?} all {f:?}");
    }
}
