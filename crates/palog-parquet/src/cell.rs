//! The kinds of columns, and the macro that declares a table as a list of columns.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, BinaryArray};
use arrow_schema::{DataType, Field, TimeUnit};

/// The kind of a column: what a row holds, and how a run of rows becomes an array.
pub(crate) trait Cell {
    /// What a row holds.
    type Value<'v>: Copy;
    /// Collects rows.
    type Builder: Default;
    /// The word for it in spec/parquet.md.
    const WORD: &'static str;
    /// The type in Arrow.
    fn data_type() -> DataType;
    /// Adds a row; `None` is null.
    fn append(builder: &mut Self::Builder, value: Option<Self::Value<'_>>);
    /// The rows so far, which the builder gives away.
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
}

/// The next run is about as long as the last one: room for that spares growing, which copies.
macro_rules! plain_cells {
    ($($(#[$doc:meta])* $name:ident: $value:ty, $builder:ty, $word:literal, $type:expr, $room:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl Cell for $name {
            type Value<'v> = $value;
            type Builder = $builder;
            const WORD: &'static str = $word;
            fn data_type() -> DataType {
                $type
            }
            fn append(builder: &mut Self::Builder, value: Option<Self::Value<'_>>) {
                builder.append_option(value);
            }
            fn finish(builder: &mut Self::Builder) -> ArrayRef {
                let room: fn(&Self::Builder) -> Self::Builder = $room;
                let next = room(builder);
                Arc::new(std::mem::replace(builder, next).finish())
            }
        }
    )*};
}

plain_cells! {
    /// Characters.
    Text: &'v str, StringBuilder, "string", DataType::Utf8, |b| StringBuilder::with_capacity(b.len(), b.values_slice().len());
    /// Bytes as they stand.
    Bytes: &'v [u8], BinaryBuilder, "bytes", DataType::Binary, |b| BinaryBuilder::with_capacity(b.len(), b.values_slice().len());
    /// An integer of 64 bits with a sign.
    Int: i64, Int64Builder, "int64", DataType::Int64, |b| Int64Builder::with_capacity(b.len());
    /// Yes or no.
    Flag: bool, BooleanBuilder, "bool", DataType::Boolean, |b| BooleanBuilder::with_capacity(b.len());
}

/// Microseconds since 1970-01-01T00:00:00Z.
pub(crate) enum Micros {}

impl Cell for Micros {
    type Value<'v> = i64;
    type Builder = TimestampMicrosecondBuilder;
    const WORD: &'static str = "timestamp";
    fn data_type() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    }
    fn append(builder: &mut Self::Builder, value: Option<i64>) {
        builder.append_option(value);
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        let next = TimestampMicrosecondBuilder::with_capacity(builder.len());
        Arc::new(std::mem::replace(builder, next).finish().with_timezone("UTC"))
    }
}

/// Bytes that lie in one piece already, in the order of the rows: the column is given as a whole, once all rows are added.
pub(crate) enum Lying {}

impl Cell for Lying {
    type Value<'v> = ();
    type Builder = Option<BinaryArray>;
    const WORD: &'static str = "bytes";
    fn data_type() -> DataType {
        DataType::Binary
    }
    fn append(_: &mut Self::Builder, _: Option<()>) {}
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        Arc::new(builder.take().unwrap_or_else(|| BinaryArray::from_vec(Vec::new())))
    }
}

/// A list of strings; an empty one is null.
pub(crate) enum Texts {}

impl Cell for Texts {
    type Value<'v> = &'v [&'v str];
    type Builder = ListBuilder<StringBuilder>;
    const WORD: &'static str = "list of string";
    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
    }
    fn append(builder: &mut Self::Builder, value: Option<Self::Value<'_>>) {
        let texts = value.unwrap_or_default();
        texts.iter().for_each(|text| builder.values().append_value(text));
        builder.append(!texts.is_empty());
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

/// A column of a table (spec/parquet.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The word for its type.
    pub kind: &'static str,
    /// Whether it may be null.
    pub nullable: bool,
    /// What it holds.
    pub doc: &'static str,
}

/// Declares a table: a row as a struct of options, and the columns that collect rows. `!` marks a column that is never null.
macro_rules! table {
    ($(#[$meta:meta])* $row:ident, $columns:ident { $( $(#[doc = $doc:literal])+ $field:ident $(as $name:literal)? : $cell:ident $null:tt, )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $row<'v> {
            $( $(#[doc = $doc])+ pub(crate) $field: Option<<$cell as $crate::cell::Cell>::Value<'v>>, )*
        }

        /// Collects rows of the table.
        #[derive(Default)]
        pub(crate) struct $columns {
            $( $field: <$cell as $crate::cell::Cell>::Builder, )*
            rows: usize,
        }

        impl $columns {
            /// The columns, in their order.
            pub(crate) const ALL: &'static [$crate::cell::Column] = &[$( $crate::cell::Column {
                name: table!(@name $field $($name)?),
                kind: <$cell as $crate::cell::Cell>::WORD,
                nullable: table!(@nullable $null),
                doc: concat!($($doc),+).trim_ascii(),
            }, )*];

            /// The columns as fields in Arrow.
            pub(crate) fn fields() -> Vec<arrow_schema::Field> {
                let types = [$( <$cell as $crate::cell::Cell>::data_type(), )*];
                Self::ALL.iter().zip(types).map(|(c, kind)| arrow_schema::Field::new(c.name, kind, c.nullable)).collect()
            }

            /// Adds a row.
            pub(crate) fn push(&mut self, row: &$row<'_>) {
                $( <$cell as $crate::cell::Cell>::append(&mut self.$field, row.$field); )*
                self.rows += 1;
            }

            /// How many rows there are.
            pub(crate) fn len(&self) -> usize {
                self.rows
            }

            /// The rows so far, which this gives away.
            pub(crate) fn take(&mut self) -> Vec<arrow_array::ArrayRef> {
                self.rows = 0;
                vec![$( <$cell as $crate::cell::Cell>::finish(&mut self.$field), )*]
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@nullable !) => { false };
    (@nullable ?) => { true };
}

pub(crate) use table;
