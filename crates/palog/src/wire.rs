//! The macro that declares wire records the way the spec lists them: `member: type` or `member?: type`.

use serde::{Deserialize, Deserializer};

/// Reads an optional member: absent is `None`, `null` is an error (spec 02, R-ENV-020).
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}

/// Declares structs with the serde and schema attributes that every wire record has.
macro_rules! wire {
    ($( $(#[$meta:meta])* pub struct $name:ident $(<$lt:lifetime>)? { $($body:tt)* } )*) => {
        $( wire!(@munch [$(#[$meta])*] $name [$($lt)?] [] $($body)*); )*
    };
    (@munch $meta:tt $name:ident $lt:tt [$($done:tt)*] $(#[$fm:meta])* $field:ident ?: $ty:ty, $($rest:tt)*) => {
        wire!(@munch $meta $name $lt [$($done)*
            $(#[$fm])*
            #[serde(default, deserialize_with = "crate::wire::present", skip_serializing_if = "Option::is_none")]
            pub $field: Option<$ty>,
        ] $($rest)*);
    };
    (@munch $meta:tt $name:ident $lt:tt [$($done:tt)*] $(#[$fm:meta])* $field:ident : $ty:ty, $($rest:tt)*) => {
        wire!(@munch $meta $name $lt [$($done)* $(#[$fm])* pub $field: $ty,] $($rest)*);
    };
    (@munch [$($meta:tt)*] $name:ident [] [$($done:tt)*]) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        $($meta)*
        pub struct $name { $($done)* }
    };
    (@munch [$($meta:tt)*] $name:ident [$lt:lifetime] [$($done:tt)*]) => {
        $($meta)*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(bound(deserialize = "'de: 'a"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name<$lt> { $($done)* }
    };
}

/// Declares closed word lists: the wire word is the variant's name in snake case.
macro_rules! words {
    ($( $(#[$meta:meta])* pub enum $name:ident { $($(#[$vm:meta])* $variant:ident = $word:literal,)* } )*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[non_exhaustive]
            pub enum $name { $($(#[$vm])* #[serde(rename = $word)] $variant,)* }

            impl $name {
                /// The word on the wire.
                #[must_use]
                pub const fn word(self) -> &'static str {
                    match self { $(Self::$variant => $word,)* }
                }
            }

            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(self.word())
                }
            }
        )*
    };
}

pub(crate) use {wire, words};
