//! Rows: the plain data of a figure, and how they stand in a CSV file.

use std::fmt;

/// A kind of row with named columns.
pub trait Row: Sized {
    /// Its columns in order.
    const COLUMNS: &'static [Column];

    /// The row, or `None` if a cell is not what its column expects; the record keeps the faults.
    fn read(record: &mut Record<'_>) -> Option<Self>;

    /// Its cells in the order of the columns.
    fn write(&self) -> Vec<String>;
}

/// A column of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name in the first row.
    pub name: &'static str,
    /// False if the file may leave the column out or a cell empty.
    pub required: bool,
}

/// A value in a cell.
pub trait Cell: Sized {
    /// False if the cell may be missing.
    const REQUIRED: bool = true;
    /// The value, or what was expected.
    ///
    /// # Errors
    /// If the text is no such value.
    fn read(text: Option<&str>) -> Result<Self, String>;
    /// The text of the value.
    fn write(&self) -> String;
}

impl Cell for String {
    fn read(text: Option<&str>) -> Result<Self, String> {
        text.map(str::to_string)
            .ok_or_else(|| "is empty; expected a name".to_string())
    }
    fn write(&self) -> String {
        self.clone()
    }
}

impl Cell for f64 {
    fn read(text: Option<&str>) -> Result<Self, String> {
        let text = text.ok_or("is empty; expected a number")?;
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(_) => Err(format!("is {text}; expected a finite number")),
            Err(_) => Err(format!("is `{text}`; expected a number")),
        }
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

impl Cell for u64 {
    fn read(text: Option<&str>) -> Result<Self, String> {
        let text = text.ok_or("is empty; expected a whole number")?;
        text.parse()
            .map_err(|_| format!("is `{text}`; expected a whole number of at least 0"))
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

impl<T: Cell> Cell for Option<T> {
    const REQUIRED: bool = false;
    fn read(text: Option<&str>) -> Result<Self, String> {
        match text {
            None => Ok(None),
            text => T::read(text).map(Some),
        }
    }
    fn write(&self) -> String {
        self.as_ref().map_or_else(String::new, Cell::write)
    }
}

/// A record of a CSV file while it is read.
#[derive(Debug)]
pub struct Record<'a> {
    /// Of each column, where it stands in the file.
    places: &'a [Option<usize>],
    cells: &'a csv::StringRecord,
    columns: &'static [Column],
    faults: Vec<(usize, String)>,
}

impl Record<'_> {
    /// The value in a column.
    pub fn get<T: Cell>(&mut self, column: &str) -> Option<T> {
        let number = self.columns.iter().position(|c| c.name == column)?;
        let place = self.places[number];
        let text = place
            .and_then(|place| self.cells.get(place))
            .map(str::trim)
            .filter(|text| !text.is_empty());
        match T::read(text) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.faults.push((place.unwrap_or(0), format!("{column} {fault}")));
                None
            }
        }
    }
}

/// What is wrong with a file of rows: every fault, each as `file:line:column: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFaults(pub Vec<String>);

impl fmt::Display for CsvFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for CsvFaults {}

/// Faults that are written out; the rest is counted.
const MOST_FAULTS: usize = 10;

/// Reads rows from CSV. `file` is its name in messages. Columns may stand in any order, and others are ignored; a byte
/// order mark, `\r\n`, empty lines and lines that begin with `#` are no fault.
///
/// # Errors
/// Every missing column, and every cell that is not what its column expects, with line and column. The column of a
/// fault counts the cells of its line from 1.
pub fn read_csv<T: Row>(file: &str, text: &str) -> Result<Vec<T>, CsvFaults> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let one = |message: String| CsvFaults(vec![message]);
    if text.trim().is_empty() {
        return Err(one(format!(
            "{file}: is empty; expected a first line with the columns {}",
            names(T::COLUMNS)
        )));
    }
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let header = reader
        .headers()
        .map_err(|error| one(format!("{file}: {error}")))?
        .clone();
    let found: Vec<&str> = header.iter().map(str::trim).collect();
    let places: Vec<Option<usize>> = T::COLUMNS
        .iter()
        .map(|column| found.iter().position(|name| *name == column.name))
        .collect();
    let line = text.lines().take_while(|line| line.starts_with('#')).count() + 1;
    let missing: Vec<String> = T::COLUMNS
        .iter()
        .zip(&places)
        .filter(|(column, place)| column.required && place.is_none())
        .map(|(column, _)| {
            let near = found
                .iter()
                .filter(|name| !T::COLUMNS.iter().any(|c| c.name == **name))
                .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), column.name), name))
                .min()
                .filter(|(distance, _)| *distance <= 3);
            let near = near.map_or_else(String::new, |(_, name)| format!(" (is `{name}` meant?)"));
            format!(
                "{file}:{line}:1: no column `{}`{near}\n  expected: {}\n  found: {}",
                column.name,
                names(T::COLUMNS),
                found.join(",")
            )
        })
        .collect();
    if !missing.is_empty() {
        return Err(CsvFaults(missing));
    }
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                faults.push(format!("{file}: {error}"));
                continue;
            }
        };
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        let line = record.position().map_or(0, csv::Position::line);
        let mut cells = Record {
            places: &places,
            cells: &record,
            columns: T::COLUMNS,
            faults: Vec::new(),
        };
        let row = T::read(&mut cells);
        let wrong = cells.faults;
        match row {
            Some(row) if wrong.is_empty() => rows.push(row),
            _ => faults.extend(
                wrong
                    .into_iter()
                    .map(|(place, fault)| format!("{file}:{line}:{}: {fault}", place + 1)),
            ),
        }
    }
    if faults.len() > MOST_FAULTS {
        let more = faults.len() - MOST_FAULTS;
        faults.truncate(MOST_FAULTS);
        faults.push(format!("{file}: and {more} more"));
    }
    if !faults.is_empty() {
        return Err(CsvFaults(faults));
    }
    if rows.is_empty() {
        return Err(one(format!("{file}: has columns but no rows")));
    }
    Ok(rows)
}

/// The rows as CSV.
#[must_use]
pub fn write_csv<T: Row>(rows: &[T]) -> String {
    let header: Vec<String> = T::COLUMNS.iter().map(|column| column.name.to_string()).collect();
    table(&header, rows.iter().map(Row::write))
}

/// Any table as CSV.
pub(crate) fn table(header: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory fails only for rows of unequal length, which the types exclude.
    writer.write_record(header).ok();
    for row in rows {
        writer.write_record(row).ok();
    }
    String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned()
}

fn names(columns: &[Column]) -> String {
    let name = |column: &Column| match column.required {
        true => column.name.to_string(),
        false => format!("[{}]", column.name),
    };
    columns.iter().map(name).collect::<Vec<_>>().join(",")
}

/// Defines a struct whose fields are the columns of a CSV file.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }

        impl $crate::row::Row for $name {
            const COLUMNS: &'static [$crate::row::Column] = &[$($crate::row::Column {
                name: stringify!($field),
                required: <$type as $crate::row::Cell>::REQUIRED,
            }),*];

            fn read(record: &mut $crate::row::Record<'_>) -> Option<Self> {
                $(let $field = record.get(stringify!($field));)*
                Some($name { $($field: $field?),* })
            }

            fn write(&self) -> Vec<String> {
                vec![$($crate::row::Cell::write(&self.$field)),*]
            }
        }
    };
}
pub(crate) use row;
