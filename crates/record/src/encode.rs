// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows to the bytes of a row group, and the footer that makes the groups so far a file.
//!
//! The bytes stay in memory until they are taken: who writes them can try again.

use crate::Row;
use crate::columns::{COLUMNS, Column, Value};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Version 1 of the format: what every reader reads.
const FORMAT_VERSION: i32 = 1;

/// Key of the file's metadata: a JSON object, for each column its unit and its variable.
const ABOUT_COLUMNS: &str = "fatpath.columns";

/// The groups of one file.
pub(crate) struct Encoder {
    writer: SerializedFileWriter<Vec<u8>>,
    about: KeyValue,
    rows: i64,
}

impl Encoder {
    pub(crate) fn new() -> Result<Encoder> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // Of groups, not of pages: enough to skip a group by its times or its flow.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties))?;
        Ok(Encoder {
            writer,
            about: about(),
            rows: 0,
        })
    }

    /// Adds a row group; its bytes, to be put behind those of before.
    pub(crate) fn group(&mut self, rows: &[Row]) -> Result<Vec<u8>> {
        let mut group = self.writer.next_row_group()?;
        for column in COLUMNS {
            if let Some(writer) = group.next_column()? {
                write_column(writer, column, rows)?;
            }
        }
        group.close()?;
        self.writer.flush()?;
        self.rows += rows.len() as i64;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.writer.flushed_row_groups().len()
    }

    /// What, put behind the groups so far, makes them a file.
    pub(crate) fn footer(&self) -> Result<Vec<u8>> {
        let schema = self.writer.schema_descr();
        let file = FileMetaData::new(
            FORMAT_VERSION,
            self.rows,
            Some(concat!("fatpath ", env!("CARGO_PKG_VERSION")).to_owned()),
            Some(vec![self.about.clone()]),
            Arc::new(schema.clone()),
            None,
        );
        let metadata = ParquetMetaData::new(file, self.writer.flushed_row_groups().to_vec());
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &metadata).finish()?;
        Ok(footer)
    }
}

/// What the file says of itself, for whoever reads it without this program.
fn about() -> KeyValue {
    let columns: serde_json::Map<_, _> = COLUMNS
        .iter()
        .map(|column| {
            let metadata = serde_json::json!({ "unit": column.unit, "rfc4898": column.variable });
            (column.name.to_owned(), metadata)
        })
        .collect();
    let columns = serde_json::Value::from(columns).to_string();
    KeyValue::new(ABOUT_COLUMNS.to_owned(), columns)
}

fn schema() -> Result<TypePtr> {
    let fields: Result<Vec<TypePtr>> = COLUMNS.iter().map(|c| field(c).map(Arc::new)).collect();
    let root = Type::group_type_builder("sample").with_fields(fields?);
    root.build().map(Arc::new)
}

fn field(column: &Column) -> Result<Type> {
    let (physical, logical) = match column.value {
        Value::Time(_) => {
            let utc = LogicalType::timestamp(true, TimeUnit::MICROS);
            (Physical::INT64, Some(utc))
        }
        Value::Whole(_) | Value::Maybe(_) => (Physical::INT64, None),
        Value::Flag(_) => (Physical::BOOLEAN, None),
        Value::Text(_) | Value::MaybeText(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = match column.value {
        Value::Maybe(_) | Value::MaybeText(_) => Repetition::OPTIONAL,
        _ => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

fn write_column(
    mut writer: SerializedColumnWriter<'_>,
    column: &Column,
    rows: &[Row],
) -> Result<()> {
    match column.value {
        Value::Time(of) | Value::Whole(of) => {
            let values: Vec<i64> = rows.iter().map(of).collect();
            let typed = writer.typed::<Int64Type>();
            typed.write_batch(&values, None, None)?;
        }
        Value::Maybe(of) => {
            let values: Vec<Option<i64>> = rows.iter().map(of).collect();
            let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
            let values: Vec<i64> = values.into_iter().flatten().collect();
            let typed = writer.typed::<Int64Type>();
            typed.write_batch(&values, Some(&levels), None)?;
        }
        Value::Flag(of) => {
            let values: Vec<bool> = rows.iter().map(of).collect();
            writer
                .typed::<BoolType>()
                .write_batch(&values, None, None)?;
        }
        Value::Text(of) => {
            let text = |row| ByteArray::from(of(row).into_bytes());
            let values: Vec<ByteArray> = rows.iter().map(text).collect();
            let typed = writer.typed::<ByteArrayType>();
            typed.write_batch(&values, None, None)?;
        }
        Value::MaybeText(of) => {
            let values: Vec<Option<String>> = rows.iter().map(of).collect();
            let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
            let texts = values.into_iter().flatten().map(String::into_bytes);
            let values: Vec<ByteArray> = texts.map(ByteArray::from).collect();
            let typed = writer.typed::<ByteArrayType>();
            typed.write_batch(&values, Some(&levels), None)?;
        }
    }
    writer.close()
}
