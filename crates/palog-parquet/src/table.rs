//! The three tables, their schema, and how they are written (spec/parquet.md).

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::actions::ActionColumns;
use crate::cell::Column;
use crate::events::EventColumns;
use crate::sessions::SessionColumns;

/// The version of the schema; files carry it as `palog.schema` (spec/parquet.md, "Versions").
pub const SCHEMA_VERSION: &str = "1";

/// A table of a dataset (spec/parquet.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// A row for each line of a log.
    Events,
    /// A row for each action.
    Actions,
    /// A row for each log.
    Sessions,
}

impl Table {
    /// All of them, in the order in which they are written.
    pub const ALL: [Table; 3] = [Table::Events, Table::Actions, Table::Sessions];

    /// Its name, which is that of its directory.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Table::Events => "events",
            Table::Actions => "actions",
            Table::Sessions => "sessions",
        }
    }

    /// Its columns, in their order.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Table::Events => EventColumns::ALL,
            Table::Actions => ActionColumns::ALL,
            Table::Sessions => SessionColumns::ALL,
        }
    }

    /// Its schema in Arrow.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        let fields = match self {
            Table::Events => EventColumns::fields(),
            Table::Actions => ActionColumns::fields(),
            Table::Sessions => SessionColumns::fields(),
        };
        let metadata = [("palog.schema", SCHEMA_VERSION), ("palog.table", self.name())];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Arc::new(Schema::new_with_metadata(fields, std::collections::HashMap::from(metadata)))
    }

    /// The columns of a batch whose values hardly repeat: a dictionary would only cost time.
    const fn distinct(self) -> &'static [&'static str] {
        match self {
            Table::Events => &["line", "line_number", "offset", "seq", "id", "time", "time_text", "text", "source_at"],
            Table::Actions => &["action", "seq"],
            Table::Sessions => &["log", "torn_tail"],
        }
    }

    /// How its files are written; `partitions` is the option they were written under.
    pub(crate) fn properties(self, partitions: &str) -> Result<WriterProperties, ParquetError> {
        let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
        let metadata = vec![
            pair("palog.schema", SCHEMA_VERSION),
            pair("palog.table", self.name()),
            pair("palog.partitions", partitions),
        ];
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("palog ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_statistics_truncate_length(Some(64))
            .set_max_row_group_row_count(Some(crate::piece::MAX_ROWS))
            .set_key_value_metadata(Some(metadata));
        for name in self.distinct() {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(*name), false);
        }
        for name in ["line", "text"] {
            properties = properties.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::None);
        }
        Ok(properties.build())
    }

    /// The rows that were collected, as a batch of this table.
    pub(crate) fn batch(self, columns: Vec<arrow_array::ArrayRef>) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(self.schema(), columns)
    }
}
