//! The kernels of `examples/cuda-kernels`, against the same mathematics written plainly.

use crate::bench::{Argument, Bench, Float32, Integer, noise};
use gpuemu_ptx::emulate::Options;

macro_rules! source {
    ($name:literal) => {
        include_str!(concat!("../../../examples/cuda-kernels/kernels/", $name, ".sm_80.ptx"))
    };
}

fn integer(value: usize) -> Argument {
    Integer(value as i128)
}

#[track_caller]
fn near(got: &[f32], expected: &[f64], bound: f64) {
    assert_eq!(got.len(), expected.len());
    for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let distance = (f64::from(got) - expected).abs();
        assert!(distance <= bound * (1.0 + expected.abs()), "[{index}]: {got} instead of {expected}");
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

#[test]
fn saxpy() {
    for n in [1, 2, 3, 5, 1000, 1023, 1024, 1025, 4099] {
        let mut bench = Bench::new(source!("saxpy"));
        let (x, y) = (noise(n, 1), noise(n, 2));
        let (tx, ty) = (bench.tensor("x", &x), bench.tensor("y", &y));
        let grid = (n as u32).div_ceil(1024).min(3);
        bench.run("saxpy", [grid, 1, 1], [256, 1, 1], 0, &[tx, ty.clone(), Float32(-0.5), integer(n)]);
        // A fused multiply-add of binary32 is exactly rounded.
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x.mul_add(-0.5, *y)).collect();
        assert_eq!(bench.read::<f32>(&ty, n), expected, "n {n}");
    }
}

#[test]
fn row_softmax() {
    for (rows, columns) in [(1, 1), (3, 7), (2, 128), (5, 129), (2, 1000), (3, 513)] {
        let mut bench = Bench::new(source!("row_softmax"));
        let x: Vec<f32> = noise(rows * columns, 3).iter().map(|x| 8.0 * x).collect();
        let (tx, out) = (bench.tensor("x", &x), bench.tensor("out", &vec![0f32; rows * columns]));
        let arguments = [tx, out.clone(), integer(columns)];
        bench.run("row_softmax", [rows as u32, 1, 1], [128, 1, 1], 0, &arguments);
        let mut expected = Vec::new();
        for row in x.chunks(columns) {
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f64> = row.iter().map(|&x| (f64::from(x) - f64::from(top)).exp()).collect();
            let total: f64 = powers.iter().sum();
            expected.extend(powers.iter().map(|power| power / total));
        }
        near(&bench.read(&out, rows * columns), &expected, 1e-6);
    }
}

#[test]
fn row_sum_and_layer_norm() {
    for (rows, columns) in [(1, 1), (4, 100), (3, 256), (2, 777)] {
        let x = noise(rows * columns, 4);
        let mut bench = Bench::new(source!("row_sum"));
        let (tx, out) = (bench.tensor("x", &x), bench.tensor("out", &vec![0f32; rows]));
        bench.run("row_sum", [rows as u32, 1, 1], [256, 1, 1], 0, &[tx, out.clone(), integer(columns)]);
        let sums: Vec<f64> = x.chunks(columns).map(|row| wide(row).iter().sum()).collect();
        near(&bench.read(&out, rows), &sums, 1e-5);

        let mut bench = Bench::new(source!("layer_norm"));
        let (weight, bias) = (noise(columns, 5), noise(columns, 6));
        let arguments = [
            bench.tensor("x", &x),
            bench.tensor("weight", &weight),
            bench.tensor("bias", &bias),
            bench.tensor("out", &vec![0f32; rows * columns]),
            integer(columns),
            Float32(1e-5),
        ];
        bench.run("layer_norm", [rows as u32, 1, 1], [128, 1, 1], 0, &arguments);
        let mut expected = Vec::new();
        for row in x.chunks(columns) {
            let row = wide(row);
            let mean = row.iter().sum::<f64>() / columns as f64;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / columns as f64;
            let scale = 1.0 / (variance + 1e-5).sqrt();
            let scaled = row.iter().zip(&weight).zip(&bias);
            expected.extend(scaled.map(|((x, w), b)| (x - mean) * scale * f64::from(*w) + f64::from(*b)));
        }
        near(&bench.read(&arguments[3], rows * columns), &expected, 1e-5);
    }
}

#[test]
fn transpose_and_stencil() {
    for (images, rows, columns) in [(1, 1, 1), (2, 33, 31), (1, 64, 70)] {
        let x = noise(images * rows * columns, 7);
        let mut bench = Bench::new(source!("transpose"));
        let (tx, out) = (bench.tensor("x", &x), bench.tensor("out", &vec![0f32; x.len()]));
        let grid = [(columns as u32).div_ceil(32), (rows as u32).div_ceil(32), images as u32];
        bench.run("transpose", grid, [32, 8, 1], 0, &[tx, out.clone(), integer(rows), integer(columns)]);
        let mut expected = vec![0f32; x.len()];
        for image in 0..images {
            for row in 0..rows {
                for column in 0..columns {
                    expected[(image * columns + column) * rows + row] = x[(image * rows + row) * columns + column];
                }
            }
        }
        assert_eq!(bench.read::<f32>(&out, x.len()), expected);

        let mut bench = Bench::new(source!("stencil"));
        let weight = noise(9, 8);
        let arguments = [
            bench.tensor("x", &x),
            bench.tensor("weight", &weight),
            bench.tensor("out", &vec![0f32; x.len()]),
            integer(rows),
            integer(columns),
        ];
        let grid = [(columns as u32).div_ceil(32), (rows as u32).div_ceil(8), images as u32];
        bench.run("stencil", grid, [32, 8, 1], 0, &arguments);
        let mut expected = vec![0f64; x.len()];
        for image in 0..images {
            for row in 0..rows {
                for column in 0..columns {
                    let mut total = 0.0;
                    for (i, j) in (0..9).map(|tap| (tap / 3, tap % 3)) {
                        let (y, across) = ((row + i).wrapping_sub(1), (column + j).wrapping_sub(1));
                        if y < rows && across < columns {
                            total += f64::from(weight[3 * i + j]) * f64::from(x[(image * rows + y) * columns + across]);
                        }
                    }
                    expected[(image * rows + row) * columns + column] = total;
                }
            }
        }
        near(&bench.read(&arguments[2], x.len()), &expected, 1e-6);
    }
}

#[test]
fn histogram() {
    let (n, bins) = (5000, 37);
    let x: Vec<i32> = noise(n, 9).iter().map(|x| ((x + 1.0) * 18.4) as i32).collect();
    let mut bench = Bench::new(source!("histogram"));
    let (tx, counts) = (bench.tensor("x", &x), bench.tensor("counts", &vec![0i32; bins]));
    let arguments = [tx, counts.clone(), integer(n), integer(bins)];
    bench.run("histogram", [16, 1, 1], [256, 1, 1], 4 * bins as u32, &arguments);
    let mut expected = vec![0; bins];
    x.iter().for_each(|&x| expected[x as usize] += 1);
    assert_eq!(bench.read::<i32>(&counts, bins), expected);
}

#[test]
fn matmul_tiled() {
    for (m, n, k) in [(1, 1, 1), (65, 70, 33), (64, 64, 16)] {
        let (a, b) = (noise(m * k, 10), noise(k * n, 11));
        let mut bench = Bench::new(source!("matmul_tiled"));
        let arguments = [
            bench.tensor("a", &a),
            bench.tensor("b", &b),
            bench.tensor("c", &vec![0f32; m * n]),
            integer(m),
            integer(n),
            integer(k),
        ];
        let grid = [(n as u32).div_ceil(64), (m as u32).div_ceil(64), 1];
        bench.run("matmul_tiled", grid, [16, 16, 1], 0, &arguments);
        near(&bench.read(&arguments[2], m * n), &product(&wide(&a), &wide(&b), m, n, k), 1e-5);
    }
}

fn product(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for y in 0..m {
        for x in 0..n {
            c[y * n + x] = (0..k).map(|i| a[y * k + i] * b[i * n + x]).sum();
        }
    }
    c
}

fn halves(values: &[f32]) -> (Vec<u16>, Vec<f64>) {
    let halves: Vec<half::f16> = values.iter().map(|&x| half::f16::from_f32(x)).collect();
    (halves.iter().map(|x| x.to_bits()).collect(), halves.iter().map(|x| x.to_f64()).collect())
}

fn from_halves(bits: &[u16]) -> Vec<f32> {
    bits.iter().map(|&bits| half::f16::from_bits(bits).to_f32()).collect()
}

#[test]
fn matmul_tensor() {
    for (m, n, k) in [(16, 16, 16), (17, 20, 33), (1, 1, 1)] {
        let ((a, exact_a), (b, exact_b)) = (halves(&noise(m * k, 12)), halves(&noise(k * n, 13)));
        let mut bench = Bench::new(source!("matmul_tensor"));
        let arguments = [
            bench.tensor("a", &a),
            bench.tensor("b", &b),
            bench.tensor("c", &vec![0u16; m * n]),
            integer(m),
            integer(n),
            integer(k),
        ];
        let grid = [(n as u32).div_ceil(16), (m as u32).div_ceil(16), 1];
        bench.run("matmul_tensor", grid, [32, 1, 1], 0, &arguments);
        near(&from_halves(&bench.read(&arguments[2], m * n)), &product(&exact_a, &exact_b, m, n, k), 1e-3);
    }
}

#[test]
fn gelu() {
    for n in [1, 7, 8, 9, 1000, 1025] {
        let (x, exact) = halves(&noise(n, 14).iter().map(|x| 6.0 * x).collect::<Vec<_>>());
        let mut bench = Bench::new(source!("gelu"));
        let (tx, out) = (bench.tensor("x", &x), bench.tensor("out", &vec![0u16; n]));
        let grid = [(n as u32).div_ceil(1024), 1, 1];
        bench.run("gelu", grid, [128, 1, 1], 0, &[tx, out.clone(), integer(n)]);
        let expected: Vec<f64> = exact.iter().map(|&x| x * normal(x)).collect();
        near(&from_halves(&bench.read(&out, n)), &expected, 1e-3);
    }
}

/// The normal distribution function, by Simpson's rule from 0.
fn normal(x: f64) -> f64 {
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let (steps, h) = (2000, x / 2000.0);
    let inner: f64 = (1..steps).map(|i| density(i as f64 * h) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    0.5 + (density(0.0) + inner + density(x)) * h / 3.0
}

#[test]
fn results_do_not_depend_on_the_number_of_host_threads() {
    let (rows, columns) = (64, 333);
    let x = noise(rows * columns, 15);
    let mut answers = Vec::new();
    for threads in [1, 2, 5] {
        for seed in [None, Some(1), Some(99)] {
            let options = Options { threads, seed, ..Options::default() };
            let mut bench = Bench::with("sm_80", source!("row_softmax"), options);
            let (tx, out) = (bench.tensor("x", &x), bench.tensor("out", &vec![0f32; x.len()]));
            bench.run("row_softmax", [rows as u32, 1, 1], [128, 1, 1], 0, &[tx, out.clone(), integer(columns)]);
            answers.push(bench.read::<u32>(&out, x.len()));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}
