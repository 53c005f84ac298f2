//! Numbers grouped by another number, in two flat vectors.

/// For each of the groups 0 to n-1 its members, in the order they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grouped {
    /// The members of group g are `members[starts[g]..starts[g + 1]]`.
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Grouped {
    /// Groups pairs of a group and a member.
    pub(crate) fn new(groups: usize, pairs: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; groups + 1];
        for &(group, _) in pairs {
            starts[group as usize + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut members = vec![0; pairs.len()];
        for &(group, member) in pairs {
            members[next[group as usize] as usize] = member;
            next[group as usize] += 1;
        }
        Self { starts, members }
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The members of a group.
    pub(crate) fn of(&self, group: u32) -> &[u32] {
        &self.members[self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize]
    }
}
