//! Places in source files, each once, and what the debug strings call the functions inlined there.

use rustc_hash::FxHashMap;

use crate::parse::{self, Item, Module};
use crate::program::module::{Location, LocationId};

/// What one `.loc` says.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key<'a> {
    place: (u32, u32, u32),
    inlined: Option<(&'a str, u32, u32, u32, u32)>,
}

/// The places of a module while it is resolved.
pub(super) struct Locations<'a> {
    locations: Vec<Location>,
    known: FxHashMap<Key<'a>, LocationId>,
    /// The last place with this file, line and column, whose inlining a later one may continue.
    latest: FxHashMap<(u32, u32, u32), LocationId>,
    /// Bodies of the sections that may hold strings.
    sections: Vec<&'a str>,
    /// The bytes after each label of those sections, read when first needed.
    strings: Option<FxHashMap<&'a str, Vec<u8>>>,
}

impl<'a> Locations<'a> {
    pub fn new(module: &Module<'a>) -> Self {
        let section = |item: &Item<'a>| match item {
            Item::Section(section) if section.name.starts_with(".debug_str") => Some(section.body),
            _ => None,
        };
        Self {
            locations: Vec::new(),
            known: FxHashMap::default(),
            latest: FxHashMap::default(),
            sections: module.items.iter().filter_map(section).collect(),
            strings: None,
        }
    }

    /// The number of a place; `None` where the compiler knew no line.
    pub fn intern(&mut self, location: &parse::Location<'a>) -> Option<LocationId> {
        if location.line == 0 {
            return None;
        }
        let place = (location.file, location.line, location.column);
        let inlined = location.inlined.map(|at| (at.function, at.addend, at.file, at.line, at.column));
        let key = Key { place, inlined };
        if let Some(&id) = self.known.get(&key) {
            return Some(id);
        }
        let (mut function, mut inlined_at) = (None, None);
        if let Some(at) = location.inlined {
            function = self.string(at.function, at.addend);
            let call = (at.file, at.line, at.column);
            // A place that is known comes before this one, so that chains end.
            inlined_at = Some(self.latest.get(&call).copied().unwrap_or_else(|| self.push(call, None, None)));
        }
        let id = self.push(place, function, inlined_at);
        self.known.insert(key, id);
        Some(id)
    }

    fn push(
        &mut self,
        place: (u32, u32, u32),
        function: Option<Box<str>>,
        inlined_at: Option<LocationId>,
    ) -> LocationId {
        let id = LocationId(self.locations.len() as u32);
        let (file, line, column) = place;
        self.locations.push(Location { file, line, column, function, inlined_at });
        self.latest.insert(place, id);
        id
    }

    pub fn finish(self) -> Vec<Location> {
        self.locations
    }

    /// The string at a label of the debug sections.
    fn string(&mut self, label: &str, addend: u32) -> Option<Box<str>> {
        let sections = &self.sections;
        let strings =
            self.strings.get_or_insert_with(|| sections.iter().flat_map(|body| labelled_bytes(body)).collect());
        let bytes = strings.get(label)?.get(addend as usize..)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok().filter(|name| !name.is_empty()).map(Into::into)
    }
}

/// Labels and the `.b8` values after each, up to the next label.
fn labelled_bytes(body: &str) -> Vec<(&str, Vec<u8>)> {
    let mut labelled: Vec<(&str, Vec<u8>)> = Vec::new();
    for line in body.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        if let Some(label) = line.strip_suffix(':') {
            labelled.push((label.trim(), Vec::new()));
        } else if let (Some(values), Some((_, bytes))) = (line.strip_prefix(".b8"), labelled.last_mut()) {
            bytes.extend(values.split(',').filter_map(|value| value.trim().parse::<u8>().ok()));
        }
    }
    labelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_from_both_styles_of_sections() {
        let body = "\n$L__info_string0:\n.b8 102 // string offset\n.b8 111\n.b8 0\nL2:\n\t.b8 97,98,0,99,0\n";
        let expected = vec![("$L__info_string0", b"fo\0".to_vec()), ("L2", b"ab\0c\0".to_vec())];
        assert_eq!(labelled_bytes(body), expected);
    }
}
