// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows to the bytes of a row group, and the footer that makes the groups so far a file.
//!
//! The bytes stay in memory until they are taken: who writes them can try again.

use crate::column::{Column, Table};
use parquet::basic::Compression;
use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Version 1 of the format: what every reader reads.
const FORMAT_VERSION: i32 = 1;

/// Key of the file's metadata: a JSON object, for each column its unit and its variable.
const ABOUT_COLUMNS: &str = "fatpath.columns";

/// The groups of one file.
pub(crate) struct Encoder<R: Table> {
    columns: &'static [Column<R>],
    writer: SerializedFileWriter<Vec<u8>>,
    about: KeyValue,
    rows: i64,
}

impl<R: Table> Encoder<R> {
    pub(crate) fn new() -> Result<Encoder<R>> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // Of groups, not of pages: enough to skip a group by its times or its flow.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), schema::<R>()?, Arc::new(properties))?;
        Ok(Encoder {
            columns: R::COLUMNS,
            writer,
            about: about(R::COLUMNS),
            rows: 0,
        })
    }

    /// Adds a row group; its bytes, to be put behind those of before.
    pub(crate) fn group(&mut self, rows: &[R]) -> Result<Vec<u8>> {
        let mut group = self.writer.next_row_group()?;
        for column in self.columns {
            if let Some(writer) = group.next_column()? {
                column.write(writer, rows)?;
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
fn about<R>(columns: &[Column<R>]) -> KeyValue {
    let columns: serde_json::Map<_, _> = columns
        .iter()
        .map(|column| {
            let metadata = serde_json::json!({ "unit": column.unit, "rfc4898": column.variable });
            (column.name.to_owned(), metadata)
        })
        .collect();
    let columns = serde_json::Value::from(columns).to_string();
    KeyValue::new(ABOUT_COLUMNS.to_owned(), columns)
}

fn schema<R: Table>() -> Result<TypePtr> {
    let fields: Result<Vec<TypePtr>> = R::COLUMNS.iter().map(|c| c.field().map(Arc::new)).collect();
    let root = Type::group_type_builder(R::NAME).with_fields(fields?);
    root.build().map(Arc::new)
}
