//! JSON, which Rust's standard library lacks. Complete; no need to edit.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};
use std::ops::Index;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

pub fn text(value: &str) -> Json {
    Json::Text(value.to_string())
}

pub fn list(values: impl IntoIterator<Item = Json>) -> Json {
    Json::List(values.into_iter().collect())
}

pub fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

impl Json {
    /// The text; empty for anything else.
    pub fn text(&self) -> &str {
        if let Json::Text(value) = self { value } else { "" }
    }

    /// The number; 0 for anything else.
    pub fn number(&self) -> f64 {
        if let Json::Number(value) = self { *value } else { 0.0 }
    }

    /// The values of a list; empty for anything else.
    pub fn items(&self) -> &[Json] {
        if let Json::List(values) = self { values } else { &[] }
    }
}

impl Index<&str> for Json {
    type Output = Json;

    /// A field; null if it is missing.
    fn index(&self, name: &str) -> &Json {
        if let Json::Object(fields) = self { fields.get(name).unwrap_or(&Json::Null) } else { &Json::Null }
    }
}

impl Display for Json {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Json::Null => write!(f, "null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(value) => write!(f, "{value}"),
            Json::Text(value) => quoted(value, f),
            Json::List(values) => separated(f, '[', values, |f, value| write!(f, "{value}"), ']'),
            Json::Object(fields) => {
                let field = |f: &mut Formatter<'_>, (name, value): (&String, &Json)| {
                    quoted(name, f)?;
                    write!(f, ":{value}")
                };
                separated(f, '{', fields, field, '}')
            }
        }
    }
}

fn separated<T>(
    f: &mut Formatter<'_>,
    open: char,
    values: impl IntoIterator<Item = T>,
    each: impl Fn(&mut Formatter<'_>, T) -> Result,
    close: char,
) -> Result {
    write!(f, "{open}")?;
    for (number, value) in values.into_iter().enumerate() {
        if number > 0 {
            write!(f, ",")?;
        }
        each(f, value)?;
    }
    write!(f, "{close}")
}

fn quoted(value: &str, f: &mut Formatter<'_>) -> Result {
    write!(f, "\"")?;
    for one in value.chars() {
        match one {
            '"' | '\\' => write!(f, "\\{one}")?,
            '\0'..='\x1f' => write!(f, "\\u{:04x}", one as u32)?,
            _ => write!(f, "{one}")?,
        }
    }
    write!(f, "\"")
}

/// Parses a value; panics if the text is not JSON.
pub fn parse(text: &str) -> Json {
    Parser { rest: text.trim() }.value()
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Json {
        match self.rest.chars().next() {
            Some('{') => Json::Object(self.sequence('}', |parser| {
                let name = parser.string();
                assert!(parser.take(":"), "no colon before {:?}", parser.rest);
                (name, parser.value())
            })),
            Some('[') => Json::List(self.sequence(']', Parser::value)),
            Some('"') => Json::Text(self.string()),
            _ => {
                let end = self.rest.find([',', ']', '}', ' ']).unwrap_or(self.rest.len());
                match self.cut(end) {
                    "null" => Json::Null,
                    "true" => Json::Bool(true),
                    "false" => Json::Bool(false),
                    number => Json::Number(number.parse().expect("a JSON value")),
                }
            }
        }
    }

    fn sequence<T, C: FromIterator<T>>(&mut self, close: char, each: impl Fn(&mut Self) -> T) -> C {
        self.cut(1);
        let mut found = Vec::new();
        while !self.take(&close.to_string()) {
            assert!(found.is_empty() || self.take(","), "no comma before {:?}", self.rest);
            found.push(each(self));
        }
        found.into_iter().collect()
    }

    fn string(&mut self) -> String {
        let mut units = Vec::new();
        self.rest = self.rest.trim_start();
        assert!(self.cut(1) == "\"", "no string before {:?}", self.rest);
        while !self.rest.starts_with('"') {
            let one = self.rest.chars().next().expect("the end of a string");
            self.rest = &self.rest[one.len_utf8()..];
            let unit = if one == '\\' { self.escape() } else { None };
            units.extend(unit.map_or_else(|| one.encode_utf16(&mut [0; 2]).to_vec(), |unit| vec![unit]));
        }
        self.cut(1);
        String::from_utf16_lossy(&units)
    }

    fn escape(&mut self) -> Option<u16> {
        match self.cut(1) {
            "u" => u16::from_str_radix(self.cut(4), 16).ok(),
            "n" => Some(10),
            "t" => Some(9),
            "r" => Some(13),
            "b" => Some(8),
            "f" => Some(12),
            plain => plain.encode_utf16().next(),
        }
    }

    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest).trim_start();
        found.is_some()
    }

    fn cut(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}
