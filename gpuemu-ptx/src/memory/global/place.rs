//! What is at an address, and what one in no region was probably meant to be.

use std::fmt;

use std::sync::PoisonError;

use super::{GUARD, Global};

/// Addresses below are null plus an offset.
const NULL_PAGE: u64 = 1 << 16;

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Null, or so near above or below it that it was null.
    Null {
        /// Bytes from null.
        offset: i64,
    },
    /// Within a region.
    Inside {
        /// Its name.
        region: String,
        /// Bytes from its start.
        offset: u64,
        /// Its bytes.
        bytes: u64,
        /// Bytes of its elements; 0 where they are not known.
        element: u32,
    },
    /// In a region that was freed.
    Freed {
        /// Its name.
        region: String,
        /// Bytes from its start.
        offset: u64,
        /// Bytes that it had.
        bytes: u64,
        /// Bytes of its elements; 0 where they are not known.
        element: u32,
    },
    /// Before or after the region that is nearest.
    Outside {
        /// Its name.
        region: String,
        /// Bytes from its start; negative before it.
        offset: i64,
        /// Its bytes.
        bytes: u64,
        /// Bytes of its elements; 0 where they are not known.
        element: u32,
    },
    /// Far from every region.
    Nowhere,
}

impl Global {
    /// What is at an address of an access of so many bytes.
    pub fn place(&self, address: u64, bytes: u32) -> Place {
        let access = bytes;
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let at = table.regions.partition_point(|region| region.base() <= address);
        let before = at.checked_sub(1).map(|index| &table.regions[index]);
        if let Some(region) = before.filter(|region| region.contains(address)) {
            let (name, offset) = (region.name().to_owned(), address - region.base());
            let (bytes, element) = (region.bytes(), region.element());
            return match region.is_released() {
                true => Place::Freed { region: name, offset, bytes, element },
                false if region.touches_gap(offset, u64::from(access).min(bytes - offset)) => {
                    Place::Inside { region: format!("{name}, in a gap between its elements"), offset, bytes, element }
                }
                false => Place::Inside { region: name, offset, bytes, element },
            };
        }
        if let Some(freed) = table.freed.iter().rev().find(|freed| address.wrapping_sub(freed.base) < freed.bytes) {
            return Place::Freed {
                region: freed.name.to_string(),
                offset: address - freed.base,
                bytes: freed.bytes,
                element: freed.element,
            };
        }
        if address < NULL_PAGE || address.wrapping_neg() < NULL_PAGE {
            return Place::Null { offset: address as i64 };
        }
        // The nearest end, of the region before or the one after.
        let past = before.map(|region| (address - region.base() - region.bytes(), region));
        let short =
            table.regions.get(at).map(|region| ((region.base() - address).saturating_sub(bytes.into()), region));
        match past.into_iter().chain(short).min_by_key(|&(distance, _)| distance) {
            Some((distance, region)) if distance < GUARD => Place::Outside {
                region: region.name().to_owned(),
                offset: address.wrapping_sub(region.base()) as i64,
                bytes: region.bytes(),
                element: region.element(),
            },
            _ => Place::Nowhere,
        }
    }
}

/// `1 byte`, `12 bytes (3 elements)`.
fn extent(bytes: u64, element: u32) -> String {
    let plural = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    match element {
        2.. if bytes >= u64::from(element) && bytes.is_multiple_of(element.into()) => {
            format!("{} ({})", plural(bytes, "byte"), plural(bytes / u64::from(element), "element"))
        }
        _ => plural(bytes, "byte"),
    }
}

impl fmt::Display for Place {
    /// Fit to follow "the address is ".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Null { offset: 0 } => f.write_str("null"),
            Self::Null { offset } if offset < 0 => write!(f, "null minus {}", extent(offset.unsigned_abs(), 0)),
            Self::Null { offset } => write!(f, "null plus {}", extent(offset as u64, 0)),
            Self::Inside { ref region, offset, bytes, element } => {
                write!(f, "{} into {region}, of {}", extent(offset, element), extent(bytes, element))
            }
            Self::Freed { ref region, offset, bytes, element } => {
                write!(f, "{} into {region}, of {}, which was freed", extent(offset, element), extent(bytes, element))
            }
            Self::Outside { ref region, offset, bytes, element } if offset < 0 => {
                let distance = extent(offset.unsigned_abs(), element);
                write!(f, "{distance} before the start of {region}, of {}", extent(bytes, element))
            }
            Self::Outside { ref region, offset, bytes, element } => match offset as u64 - bytes {
                0 => write!(f, "at the end of {region}, of {}", extent(bytes, element)),
                past => write!(f, "{} past the end of {region}, of {}", extent(past, element), extent(bytes, element)),
            },
            Self::Nowhere => f.write_str("in no region, nor near one"),
        }
    }
}
