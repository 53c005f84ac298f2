//! Asynchronous copies of one warp: in flight until the thread that asked for them waits.

use super::registers::LANES;

/// What one instruction asked for: bytes on their way from global to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// The lanes that asked, and whose copies have not landed.
    pub lanes: u32,
    /// Where they go, in shared memory.
    pub to: [u32; LANES],
    /// How many of each lane, 16 at most.
    pub bytes: u32,
    /// What they are.
    pub data: [u128; LANES],
    /// The groups that they were committed to; [`OPEN`] before.
    groups: [u32; LANES],
}

/// The group of copies that are not committed yet.
const OPEN: u32 = u32::MAX;

/// Copies in flight, in the order in which they were asked for.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    flights: Vec<Flight>,
    /// Groups that each lane has committed.
    committed: [u32; LANES],
}

impl Copies {
    /// None in flight.
    pub fn clear(&mut self) {
        self.flights.clear();
        self.committed = [0; LANES];
    }

    /// Lanes ask for so many bytes each.
    pub fn begin(&mut self, lanes: u32, to: [u32; LANES], bytes: u32, data: [u128; LANES]) {
        self.flights.push(Flight { lanes, to, bytes, data, groups: [OPEN; LANES] });
    }

    /// Lanes commit what they asked for.
    pub fn commit(&mut self, lanes: u32) {
        for flight in &mut self.flights {
            for lane in 0..LANES {
                let joins = flight.groups[lane] == OPEN && lanes >> lane & 1 != 0;
                flight.groups[lane] = if joins { self.committed[lane] } else { flight.groups[lane] };
            }
        }
        for lane in 0..LANES {
            self.committed[lane] += lanes >> lane & 1;
        }
    }

    /// Takes out what lands when lanes wait until at most `pending` of their groups are in flight; `None`: all copies,
    /// committed or not. Each is shown with the lanes whose part of it lands.
    pub fn land(&mut self, lanes: u32, pending: Option<u32>, mut show: impl FnMut(&Flight, u32)) {
        let committed = &self.committed;
        self.flights.retain_mut(|flight| {
            let lands = pending.map_or(u32::MAX, |pending| {
                let here = |lane: usize| {
                    let group = flight.groups[lane];
                    group != OPEN && u64::from(group) + u64::from(pending) < u64::from(committed[lane])
                };
                (0..LANES).fold(0, |all, lane| all | u32::from(here(lane)) << lane)
            });
            let landing = flight.lanes & lanes & lands;
            if landing != 0 {
                show(flight, landing);
            }
            flight.lanes &= !landing;
            flight.lanes != 0
        });
    }
}
