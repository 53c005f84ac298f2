//! The names of one function, as scopes come and go.

use rustc_hash::FxHashMap;

use crate::program::function::{PrototypeId, RegisterId, Symbol, Targets};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A register.
    Register(RegisterId),
    /// A vector register: its first element and how many there are.
    Vector(RegisterId, u8),
    /// Something with an address.
    Symbol(Symbol),
    /// A label: the index of the instruction after it.
    Label(u32),
    /// A prototype of calls.
    Prototype(PrototypeId),
    /// `.branchtargets`.
    BranchTargets(Targets),
    /// `.calltargets`.
    CallTargets(Targets),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    meaning: Meaning,
    depth: u32,
    offset: u32,
}

/// `%r<100>`: registers that share a name but for their number.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: RegisterId,
    count: u32,
    vector: u8,
    depth: u32,
    offset: u32,
    /// The group of the same name in a scope around this one.
    outer: Option<u32>,
}

enum Undo<'a> {
    Name(&'a str, Option<Entry>),
    Group(&'a str, Option<u32>),
}

/// The names that can be seen, innermost scope first.
#[derive(Default)]
pub(super) struct Names<'a> {
    names: FxHashMap<&'a str, Entry>,
    groups: FxHashMap<&'a str, u32>,
    arena: Vec<Group>,
    undo: Vec<Undo<'a>>,
    scopes: Vec<usize>,
}

impl<'a> Names<'a> {
    /// A scope begins.
    pub fn open(&mut self) {
        self.scopes.push(self.undo.len());
    }

    /// It ends; the names declared in it go.
    pub fn close(&mut self) {
        let mark = self.scopes.pop().unwrap_or(0);
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Name(name, Some(entry))) => drop(self.names.insert(name, entry)),
                Some(Undo::Name(name, None)) => drop(self.names.remove(name)),
                Some(Undo::Group(name, Some(group))) => drop(self.groups.insert(name, group)),
                Some(Undo::Group(name, None)) => drop(self.groups.remove(name)),
                None => {}
            }
        }
    }

    /// Declares a name. The offset of an earlier declaration in the same scope is the error.
    pub fn declare(&mut self, name: &'a str, meaning: Meaning, offset: u32) -> Result<(), u32> {
        let depth = self.scopes.len() as u32;
        if let Some((prefix, number)) = numbered(name)
            && let Some(&group) = self.groups.get(prefix)
            && self.arena[group as usize].depth == depth
            && number < self.arena[group as usize].count
        {
            return Err(self.arena[group as usize].offset);
        }
        let before = self.names.insert(name, Entry { meaning, depth, offset });
        match before {
            Some(before) if before.depth == depth => Err(before.offset),
            _ => {
                self.undo.push(Undo::Name(name, before));
                Ok(())
            }
        }
    }

    /// Declares `name<count>`, from `first` on, `vector` registers each.
    pub fn declare_group(
        &mut self,
        name: &'a str,
        first: RegisterId,
        count: u32,
        vector: u8,
        offset: u32,
    ) -> Result<(), u32> {
        let depth = self.scopes.len() as u32;
        let outer = self.groups.get(name).copied();
        if let Some(outer) = outer
            && self.arena[outer as usize].depth == depth
        {
            return Err(self.arena[outer as usize].offset);
        }
        self.groups.insert(name, self.arena.len() as u32);
        self.arena.push(Group { first, count, vector, depth, offset, outer });
        self.undo.push(Undo::Group(name, outer));
        Ok(())
    }

    /// What a name stands for here.
    pub fn find(&self, name: &str) -> Option<Meaning> {
        // A register of a group is by far the commonest; a name of its own in an inner scope hides it.
        let grouped = numbered(name).and_then(|(prefix, number)| {
            let mut next = self.groups.get(prefix).copied();
            while let Some(group) = next.map(|index| self.arena[index as usize]) {
                if number < group.count {
                    let register = RegisterId(group.first.0 + number * u32::from(group.vector));
                    let meaning = match group.vector {
                        1 => Meaning::Register(register),
                        vector => Meaning::Vector(register, vector),
                    };
                    return Some((meaning, group.depth));
                }
                next = group.outer;
            }
            None
        });
        match (grouped, self.scopes.len() as u32) {
            (Some((meaning, depth)), current) if depth == current => Some(meaning),
            (Some((meaning, depth)), _) => match self.names.get(name) {
                Some(entry) if entry.depth > depth => Some(entry.meaning),
                _ => Some(meaning),
            },
            (None, _) => self.names.get(name).map(|entry| entry.meaning),
        }
    }

    /// Every name in sight, groups as their first and last, for a message.
    pub fn all(&self) -> impl Iterator<Item = String> + '_ {
        let groups = self.groups.iter().flat_map(|(name, &group)| {
            let count = self.arena[group as usize].count;
            [format!("{name}0"), format!("{name}{}", count.saturating_sub(1))]
        });
        self.names.keys().map(|name| (*name).to_owned()).chain(groups)
    }
}

/// `%r12` as `%r` and 12; `None` where the name ends in no number that a group could have given it.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let bytes = name.as_bytes();
    let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (prefix, number) = name.split_at(bytes.len() - digits);
    match number.as_bytes() {
        [] => None,
        // The name of number 7 is `%r7` and never `%r07`; `%r07` is number 7 of `%r0`'s group, whose name it may be.
        [b'0', _, ..] => None,
        _ => Some((prefix, number.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_gives_its_registers_and_no_more() {
        let mut names = Names::default();
        names.declare_group("%r", RegisterId(5), 3, 1, 0).unwrap();
        let cases = [("%r0", Some(5)), ("%r2", Some(7)), ("%r3", None), ("%r02", None), ("%r", None), ("%q1", None)];
        for (name, expected) in cases {
            assert_eq!(names.find(name), expected.map(|id| Meaning::Register(RegisterId(id))), "{name}");
        }
    }

    #[test]
    fn an_inner_scope_hides_and_gives_back() {
        let mut names = Names::default();
        let register = |id| Some(Meaning::Register(RegisterId(id)));
        names.declare_group("%r", RegisterId(0), 4, 1, 10).unwrap();
        names.declare("t", Meaning::Register(RegisterId(9)), 11).unwrap();
        names.open();
        names.declare("t", Meaning::Register(RegisterId(20)), 12).unwrap();
        names.declare("%r1", Meaning::Register(RegisterId(21)), 13).unwrap();
        names.declare_group("%r", RegisterId(30), 1, 1, 14).unwrap();
        assert_eq!([names.find("t"), names.find("%r0"), names.find("%r1")], [register(20), register(30), register(21)]);
        assert_eq!(names.find("%r2"), register(2));
        assert_eq!(names.declare("t", Meaning::Label(0), 15), Err(12));
        names.close();
        assert_eq!([names.find("t"), names.find("%r0"), names.find("%r1")], [register(9), register(0), register(1)]);
        assert_eq!(names.declare("%r3", Meaning::Label(0), 16), Err(10));
    }
}
