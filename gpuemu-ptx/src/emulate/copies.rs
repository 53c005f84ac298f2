//! Asynchronous copies of one warp: in flight until the thread that asked for them waits.

/// Bytes on their way from global to shared memory, of one lane.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// The lane that asked.
    pub lane: u32,
    /// Where they go, in shared memory.
    pub to: u32,
    /// How many.
    pub bytes: u32,
    /// What they are.
    pub data: u128,
    /// The group they were committed to; [`OPEN`] before.
    pub group: u32,
}

/// The group of copies that are not committed yet.
pub const OPEN: u32 = u32::MAX;

/// Copies in flight, in the order in which they were asked for.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// Those in flight.
    pub flights: Vec<Flight>,
    /// Groups that each lane has committed.
    pub committed: [u32; 32],
}

impl Copies {
    /// None in flight.
    pub fn clear(&mut self) {
        self.flights.clear();
        self.committed = [0; 32];
    }

    /// Lanes commit what they asked for.
    pub fn commit(&mut self, lanes: u32) {
        for flight in &mut self.flights {
            if flight.group == OPEN && lanes >> flight.lane & 1 != 0 {
                flight.group = self.committed[flight.lane as usize];
            }
        }
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            self.committed[lane] += 1;
        }
    }

    /// Takes out what lands when lanes wait until at most `pending` of their groups are in flight; `None`: all copies,
    /// committed or not.
    pub fn land(&mut self, lanes: u32, pending: Option<u32>) -> Vec<Flight> {
        let committed = self.committed;
        let lands = |flight: &Flight| {
            lanes >> flight.lane & 1 != 0
                && match pending {
                    None => true,
                    Some(pending) => flight.group != OPEN && flight.group + pending < committed[flight.lane as usize],
                }
        };
        let landed = self.flights.iter().copied().filter(|flight| lands(flight)).collect();
        self.flights.retain(|flight| !lands(flight));
        landed
    }
}
