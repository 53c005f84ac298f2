//! Vector clocks of the warps of a block.

/// Warps of a block at most, and one more for copies that no warp performs.
pub const ACTORS: usize = 33;

/// How far each actor is seen.
pub type Cover = [u32; ACTORS];

fn join(to: &mut Cover, from: &Cover) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = (*to).max(from));
}

/// Adds what one cover sees to another.
pub(super) fn joined(mut to: Cover, from: &Cover) -> Cover {
    join(&mut to, from);
    to
}

/// Something that warps arrive at and wait for: an mbarrier, a named barrier with arrivals, a flag in shared memory.
#[derive(Clone, Copy, Debug)]
struct Object {
    /// What arrived in the current phase.
    arrived: Cover,
    /// What waiters see: the phases that are complete.
    complete: Cover,
}

/// What the lanes of a warp know of each other beyond what all of them do.
#[derive(Debug, Default)]
struct Partial {
    /// By lane, until when it is ordered behind what each other lane did.
    knows: [[u32; 32]; 32],
    /// Which lanes each one synchronised with last.
    group: [u32; 32],
}

impl Partial {
    /// These lanes synchronise, and all that they did until `past` is over. Lanes hand on what others told them.
    fn sync(&mut self, lanes: u32, past: u32) {
        let members = || (0..32_usize).filter(move |lane| lanes >> lane & 1 != 0);
        let Some(first) = members().next() else { return };
        // Nothing was done since the same lanes were here.
        if self.knows[first][first] == past && members().all(|lane| self.group[lane] == lanes) {
            return;
        }
        let mut joined = self.knows[first];
        for lane in members() {
            joined.iter_mut().zip(&self.knows[lane]).for_each(|(to, &from)| *to = (*to).max(from));
        }
        members().for_each(|lane| joined[lane] = past);
        for lane in members() {
            (self.knows[lane], self.group[lane]) = (joined, lanes);
        }
    }
}

/// The clocks of one block.
#[derive(Debug)]
pub struct Clocks {
    warps: usize,
    /// Each warp's own clock; the time of what it does next.
    own: Cover,
    /// Whether something was done at that time.
    used: u64,
    /// What all warps see, by barriers of the whole block.
    base: Cover,
    /// What each warp sees beyond that.
    known: Vec<Cover>,
    /// Up to when all lanes of a warp are ordered.
    full: [u32; 32],
    /// The same of lanes that synchronised without the others, once some of the warp did.
    partial: Vec<Option<Box<Partial>>>,
    /// What each warp's last fence covers, by scope: block, device.
    fenced: [Vec<Cover>; 2],
    any_fence: bool,
    /// Whether a warp sees anything beyond the base, or there are objects.
    any_known: bool,
    any_partial: bool,
    retired: u32,
    /// Until when each warp's own past is ordered with some other warp's.
    met: [u32; 32],
    objects: rustc_hash::FxHashMap<u64, Object>,
}

impl Clocks {
    pub(super) fn new(warps: u32) -> Self {
        let mut clocks = Self {
            warps: 0,
            own: [1; ACTORS],
            used: 0,
            base: [0; ACTORS],
            known: Vec::new(),
            full: [0; 32],
            partial: Vec::new(),
            fenced: [Vec::new(), Vec::new()],
            any_fence: false,
            any_known: false,
            any_partial: false,
            retired: 0,
            met: [0; 32],
            objects: rustc_hash::FxHashMap::default(),
        };
        clocks.restart(warps);
        clocks
    }

    /// A new block: nobody has seen anything.
    pub(super) fn restart(&mut self, warps: u32) {
        self.warps = (warps as usize).min(32);
        self.own = [1; ACTORS];
        self.used = 0;
        self.base = [0; ACTORS];
        self.full = [0; 32];
        self.retired = 0;
        self.met = [0; 32];
        // Most blocks use none of these.
        if self.any_fence || self.any_known || self.any_partial || self.known.len() != self.warps {
            for covers in std::iter::once(&mut self.known).chain(&mut self.fenced) {
                covers.clear();
                covers.resize(self.warps, [0; ACTORS]);
            }
            // What was allocated for one block serves the next.
            self.partial.resize_with(self.warps, || None);
            self.partial.iter_mut().flatten().for_each(|partial| **partial = Partial::default());
            self.objects.clear();
        }
        (self.any_fence, self.any_known, self.any_partial) = (false, false, false);
    }

    /// The time of what a warp does next.
    #[inline(always)]
    pub(super) fn now(&self, warp: u32) -> u32 {
        self.own[warp as usize]
    }

    /// Notes that something was done at that time.
    #[inline(always)]
    pub(super) fn touch(&mut self, warp: u32) {
        self.used |= 1 << warp;
    }

    /// Ends a warp's present, unless nothing was done in it.
    fn advance(&mut self, warp: usize) {
        if self.used >> warp & 1 != 0 {
            self.used &= !(1 << warp);
            self.own[warp] += 1;
        }
    }

    /// The last time that is over.
    fn past(&self, warp: usize) -> u32 {
        self.own[warp] - u32::from(self.used >> warp & 1 == 0)
    }

    /// How far a warp sees another.
    #[inline(always)]
    pub(super) fn sees(&self, warp: u32, other: u8) -> u32 {
        self.base[usize::from(other)].max(self.known[warp as usize][usize::from(other)])
    }

    /// Whether a warp has met others since it did something, so that what they did then may be ordered before now.
    #[inline(always)]
    pub(super) fn met_since(&self, warp: u32, clock: u32) -> bool {
        self.met[warp as usize] >= clock
    }

    /// Whether all that a warp did at `clock` is ordered before what any of its lanes does now.
    #[inline(always)]
    pub(super) fn warp_ordered(&self, warp: u32, clock: u32) -> bool {
        clock <= self.full[warp as usize]
    }

    /// Whether what `other` did at `clock` is ordered before what `lane` of the same warp does now.
    #[inline]
    pub(super) fn lanes_ordered(&self, warp: u32, lane: usize, other: usize, clock: u32) -> bool {
        let warp = warp as usize;
        clock <= self.full[warp]
            || self.partial[warp].as_ref().is_some_and(|partial| clock <= partial.knows[lane][other])
    }

    fn all(&self) -> u32 {
        ((1_u64 << self.warps) - 1) as u32
    }

    /// A warp is gone: barriers do not wait for it.
    pub(super) fn retire(&mut self, warp: u32) {
        self.retired |= 1 << warp;
    }

    /// A barrier of these warps. Says whether it was one of the whole block.
    pub(super) fn barrier(&mut self, warps: u32) -> bool {
        let warps = warps & self.all();
        let past: Cover = std::array::from_fn(|actor| if actor < 32 { self.past(actor) } else { 0 });
        let whole = (warps | self.retired) & self.all() == self.all();
        if whole {
            self.base[..self.warps].copy_from_slice(&past[..self.warps]);
            let copies = self.known.iter().map(|known| known[ACTORS - 1]).max().unwrap_or(0);
            self.base[ACTORS - 1] = self.base[ACTORS - 1].max(copies);
        } else {
            let members = || (0..self.warps).filter(move |warp| warps >> warp & 1 != 0);
            let mut seen = [0; ACTORS];
            for warp in members() {
                join(&mut seen, &self.known[warp]);
                seen[warp] = seen[warp].max(past[warp]);
            }
            members().for_each(|warp| join(&mut self.known[warp], &seen));
            self.any_known = true;
        }
        for (warp, &past) in past.iter().enumerate().take(self.warps).filter(|&(warp, _)| warps >> warp & 1 != 0) {
            self.full[warp] = past;
            self.met[warp] = past;
            self.advance(warp);
        }
        whole
    }

    /// Lanes of a warp synchronise.
    #[inline]
    pub(super) fn warp_sync(&mut self, warp: u32, lanes: u32) {
        let warp = warp as usize;
        let past = self.past(warp);
        if lanes == u32::MAX {
            self.full[warp] = past;
        } else {
            self.partial[warp].get_or_insert_default().sync(lanes, past);
            self.any_partial = true;
        }
        self.advance(warp);
    }

    /// All that a warp sees, itself included.
    pub(super) fn view(&self, warp: u32) -> Cover {
        let mut view = joined(self.base, &self.known[warp as usize]);
        view[warp as usize] = self.past(warp as usize);
        view
    }

    /// A fence: what the warp sees now is covered by the strong writes that follow it.
    pub(super) fn fence(&mut self, warp: u32, device: bool) {
        let view = self.view(warp);
        self.any_fence = true;
        for fenced in &mut self.fenced[..=usize::from(device)] {
            fenced[warp as usize] = view;
        }
        self.advance(warp as usize);
    }

    /// What a strong write of a warp without order of its own covers: what it saw at its last fence, and what other
    /// warps saw at theirs, if barriers have made the warp see it.
    pub(super) fn fenced(&self, warp: u32, device: bool) -> Option<Cover> {
        if !self.any_fence {
            return None;
        }
        let fenced = &self.fenced[usize::from(device)];
        let mut cover = fenced[warp as usize];
        for (other, theirs) in fenced.iter().enumerate() {
            let seen = self.sees(warp, other as u8).min(theirs[other]);
            cover[other] = cover[other].max(seen);
        }
        cover.iter().any(|&clock| clock != 0).then_some(cover)
    }

    /// A release: what the warp sees now is over.
    pub(super) fn release(&mut self, warp: u32) -> Cover {
        let view = self.view(warp);
        self.advance(warp as usize);
        view
    }

    /// The warp sees what a cover covers. That of its own lanes is ordered with it: one may have handed it to another.
    pub(super) fn acquire(&mut self, warp: u32, cover: &Cover) {
        self.met[warp as usize] = self.own[warp as usize];
        self.full[warp as usize] = self.full[warp as usize].max(cover[warp as usize].min(self.past(warp as usize)));
        self.any_known = true;
        join(&mut self.known[warp as usize], cover);
    }

    /// A copy that no warp performs is done: the time of that.
    pub(super) fn engine(&mut self) -> u32 {
        self.own[ACTORS - 1] += 1;
        self.own[ACTORS - 1]
    }

    /// Adds a cover to what arrives at an object; `visible` at once, or with the phase.
    pub(super) fn arrive(&mut self, object: u64, cover: &Cover, visible: bool) {
        self.any_known = true;
        let object = self.objects.entry(object).or_insert(Object { arrived: [0; ACTORS], complete: [0; ACTORS] });
        join(if visible { &mut object.complete } else { &mut object.arrived }, cover);
    }

    /// The phase of an object is complete.
    pub(super) fn complete(&mut self, object: u64) {
        if let Some(object) = self.objects.get_mut(&object) {
            join(&mut object.complete, &object.arrived);
            object.arrived = [0; ACTORS];
        }
    }

    /// The warp sees the complete phases of an object.
    pub(super) fn wait(&mut self, warp: u32, object: u64) {
        if let Some(object) = self.objects.get(&object) {
            let warp = warp as usize;
            self.met[warp] = self.own[warp];
            // Its own lanes have arrived there, too.
            self.full[warp] = self.full[warp].max(object.complete[warp]);
            join(&mut self.known[warp], &object.complete);
        }
    }

    /// The object is gone.
    pub(super) fn forget(&mut self, object: u64) {
        self.objects.remove(&object);
    }
}
