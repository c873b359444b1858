// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a column of a table is, and how a row gives it.

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;
use serde::Serialize;

/// What rows of a file are made of.
pub trait Table: Sized + 'static {
    /// What one row is; the name of the schema.
    const NAME: &str;
    /// Its columns, in the order of the file.
    const COLUMNS: &'static [Column<Self>];
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column<R: 'static> {
    /// With the unit as suffix where it has one.
    pub name: &'static str,
    /// Unit of the values; empty for names and flags.
    pub unit: &'static str,
    /// The variable of RFC 4898 that it tells of, in the column's own unit; empty where that has none.
    pub variable: &'static str,
    pub(crate) value: Value<R>,
}

/// How a row gives the column's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<R: 'static> {
    Time(fn(&R) -> i64),
    Whole(fn(&R) -> i64),
    Maybe(fn(&R) -> Option<i64>),
    Real(fn(&R) -> f64),
    MaybeReal(fn(&R) -> Option<f64>),
    Flag(fn(&R) -> bool),
    Text(fn(&R) -> String),
    MaybeText(fn(&R) -> Option<String>),
}

/// The name that serde gives a variant.
pub(crate) fn word(variant: &impl Serialize) -> String {
    let value = serde_json::to_value(variant).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl<R> Column<R> {
    pub(crate) fn field(&self) -> Result<Type> {
        let (physical, logical) = match self.value {
            Value::Time(_) => {
                let utc = LogicalType::timestamp(true, TimeUnit::MICROS);
                (Physical::INT64, Some(utc))
            }
            Value::Whole(_) | Value::Maybe(_) => (Physical::INT64, None),
            Value::Real(_) | Value::MaybeReal(_) => (Physical::DOUBLE, None),
            Value::Flag(_) => (Physical::BOOLEAN, None),
            Value::Text(_) | Value::MaybeText(_) => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
        };
        let repetition = match self.value {
            Value::Maybe(_) | Value::MaybeReal(_) | Value::MaybeText(_) => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }

    pub(crate) fn write(&self, mut writer: SerializedColumnWriter<'_>, rows: &[R]) -> Result<()> {
        match self.value {
            Value::Time(of) | Value::Whole(of) => {
                let values: Vec<i64> = rows.iter().map(of).collect();
                let typed = writer.typed::<Int64Type>();
                typed.write_batch(&values, None, None)?;
            }
            Value::Maybe(of) => {
                let (levels, values) = present(rows.iter().map(of));
                let typed = writer.typed::<Int64Type>();
                typed.write_batch(&values, Some(&levels), None)?;
            }
            Value::Real(of) => {
                let values: Vec<f64> = rows.iter().map(of).collect();
                let typed = writer.typed::<DoubleType>();
                typed.write_batch(&values, None, None)?;
            }
            Value::MaybeReal(of) => {
                let (levels, values) = present(rows.iter().map(of));
                let typed = writer.typed::<DoubleType>();
                typed.write_batch(&values, Some(&levels), None)?;
            }
            Value::Flag(of) => {
                let values: Vec<bool> = rows.iter().map(of).collect();
                let typed = writer.typed::<BoolType>();
                typed.write_batch(&values, None, None)?;
            }
            Value::Text(of) => {
                let values: Vec<ByteArray> = rows.iter().map(|row| bytes(of(row))).collect();
                let typed = writer.typed::<ByteArrayType>();
                typed.write_batch(&values, None, None)?;
            }
            Value::MaybeText(of) => {
                let texts = rows.iter().map(|row| of(row).map(bytes));
                let (levels, values) = present(texts);
                let typed = writer.typed::<ByteArrayType>();
                typed.write_batch(&values, Some(&levels), None)?;
            }
        }
        writer.close()
    }
}

/// Which rows have a value, and the values.
fn present<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<i16>, Vec<T>) {
    let values: Vec<Option<T>> = values.collect();
    let levels = values.iter().map(|value| i16::from(value.is_some()));
    (levels.collect(), values.into_iter().flatten().collect())
}

fn bytes(text: String) -> ByteArray {
    ByteArray::from(text.into_bytes())
}
