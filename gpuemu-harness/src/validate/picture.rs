//! A small picture of where elements are wrong: a heat map of characters, by tile.

/// Most rows of characters.
const ROWS: usize = 8;
/// Most characters in a row.
const COLUMNS: usize = 60;

/// Draws which elements are wrong. The last axis runs to the right, all others together downwards; a character stands
/// for one element or a block of them that never straddles a tile: `.` none wrong, `#` all, a digit tenths (rounded up).
/// The first line says what one character is. Nothing for fewer than two elements.
///
/// `tiles` has the kernel's tile along each axis, where it is known.
pub fn draw(wrong: &[bool], shape: &[usize], tiles: &[Option<usize>]) -> Vec<String> {
    if wrong.len() < 2 {
        return Vec::new();
    }
    let width = shape.last().copied().unwrap_or(1);
    let height = wrong.len() / width;
    let tile = |axis: Option<usize>| axis.and_then(|axis| *tiles.get(axis)?).filter(|&tile| tile > 1);
    let across = tile(shape.len().checked_sub(1));
    // Rows keep to a tile only where they are one axis.
    let down = if shape.len() == 2 { tile(Some(0)) } else { None };
    let cell_width = cell(width, COLUMNS, across);
    let cell_height = cell(height, ROWS, down);
    let bars = across.filter(|&tile| width.div_ceil(cell_width) + width / tile <= COLUMNS && tile % cell_width == 0);
    let mut lines = vec![legend(cell_height, cell_width, across.filter(|&tile| tile < width))];
    for top in (0..height).step_by(cell_height) {
        let rows = top..(top + cell_height).min(height);
        let mut line = String::new();
        for left in (0..width).step_by(cell_width) {
            if left > 0 && bars.is_some_and(|tile| left % tile == 0) {
                line.push('|');
            }
            let columns = left..(left + cell_width).min(width);
            let count: usize =
                rows.clone().map(|row| columns.clone().filter(|column| wrong[row * width + column]).count()).sum();
            line.push(shade(count, rows.len() * columns.len()));
        }
        lines.push(line);
    }
    lines
}

/// Elements a character stands for along one direction.
fn cell(size: usize, most: usize, tile: Option<usize>) -> usize {
    let least = size.div_ceil(most).max(1);
    match tile {
        // Whole tiles, or a part that divides one.
        Some(tile) if least >= tile => least.div_ceil(tile) * tile,
        Some(tile) => (least..=tile).find(|cell| tile % cell == 0).unwrap_or(tile),
        None => least,
    }
}

fn legend(height: usize, width: usize, tile: Option<usize>) -> String {
    let unit = match (height, width) {
        (1, 1) => "one element".to_string(),
        (1, width) => format!("{width} elements"),
        (height, 1) => format!("{height} rows of one element"),
        (height, width) => format!("{height} rows of {width} elements"),
    };
    let bars = tile.map_or(String::new(), |tile| format!(", tiles of {tile}"));
    format!("one character is {unit}{bars}; . none wrong, 1-9 tenths, # all")
}

fn shade(count: usize, of: usize) -> char {
    match count {
        0 => '.',
        count if count == of => '#',
        // One wrong element shows, one right one too.
        count => char::from_digit((count * 10).div_ceil(of).clamp(1, 9) as u32, 10).unwrap_or('9'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(shape: &[usize], wrong: impl Fn(usize, usize) -> bool) -> Vec<bool> {
        let width = *shape.last().unwrap();
        (0..shape.iter().product()).map(|number| wrong(number / width, number % width)).collect()
    }

    #[test]
    fn pictures() {
        let table: [(&str, &[usize], Vec<bool>, &[Option<usize>], &[&str]); 6] = [
            ("two rows", &[2, 5], marks(&[2, 5], |r, c| r == 1 && c > 2), &[None, None], &[".....", "...##"]),
            ("tiles", &[1, 10], marks(&[1, 10], |_, c| c >= 8), &[None, Some(4)], &["....|....|##"]),
            ("rank 1", &[4], marks(&[4], |_, c| c == 0), &[None], &["#..."]),
            (
                "blocks",
                &[1, 240],
                marks(&[1, 240], |_, c| !(2..236).contains(&c)),
                &[None, None],
                &["5.........................................................."],
            ),
            (
                "whole tiles",
                &[1, 1000],
                marks(&[1, 1000], |_, c| c >= 960),
                &[None, Some(32)],
                &["..............................##"],
            ),
            (
                "many rows",
                &[16, 1],
                marks(&[16, 1], |r, _| r == 15),
                &[None, None],
                &[".", ".", ".", ".", ".", ".", ".", "5"],
            ),
        ];
        for (what, shape, wrong, tiles, rows) in table {
            let lines = draw(&wrong, shape, tiles);
            assert!(lines.len() - 1 <= ROWS && lines[1..].iter().all(|line| line.len() <= COLUMNS), "{what}");
            if what == "blocks" {
                assert_eq!(lines[1], format!("5{}#", ".".repeat(58)), "{what}");
            } else {
                assert_eq!(&lines[1..], rows, "{what}: {lines:?}");
            }
        }
    }

    #[test]
    fn the_legend_says_what_a_character_is() {
        let lines = draw(&vec![false; 1000], &[1, 1000], &[None, Some(32)]);
        assert_eq!(lines[0], "one character is 32 elements, tiles of 32; . none wrong, 1-9 tenths, # all");
        assert!(draw(&[true], &[], &[]).is_empty() && draw(&[], &[0, 3], &[None, None]).is_empty());
    }
}
