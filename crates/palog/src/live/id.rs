//! Ids of live events: UUIDs of version 7 (RFC 9562; spec 02, "Ids").

use std::time::{SystemTime, UNIX_EPOCH};

use crate::blob::hex;

/// The UUIDv7 of a time and 74 random bits (of the ten bytes the first six bits are not used).
///
/// For callers with a clock and a source of randomness of their own; with the feature `live`, `new_id` has both.
#[must_use]
pub fn uuid_v7(time: SystemTime, random: [u8; 10]) -> String {
    let millis = time.duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64);
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex(&bytes);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// A fresh UUIDv7, above all that this process made before.
#[cfg(feature = "live")]
#[must_use]
pub fn new_id() -> String {
    uuid::Uuid::now_v7().hyphenated().to_string()
}

/// A draft with a fresh id and the time of the system clock.
#[cfg(feature = "live")]
#[must_use]
pub fn draft<'a>(
    actor: crate::envelope::ActorKind,
    data: impl Into<crate::events::Data<'a>>,
) -> crate::envelope::Draft<'a> {
    crate::envelope::Draft::new(new_id(), actor, data).at(crate::envelope::Time::of(SystemTime::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_variant_are_set_and_the_rest_is_kept() {
        let time = UNIX_EPOCH + std::time::Duration::from_millis(0x0199_1234_5678);
        assert_eq!(uuid_v7(time, [0xff; 10]), "01991234-5678-7fff-bfff-ffffffffffff");
        assert_eq!(uuid_v7(time, [0; 10]), "01991234-5678-7000-8000-000000000000");
    }

    #[cfg(feature = "live")]
    #[test]
    fn fresh_ids_ascend() {
        let ids: Vec<_> = (0..1000).map(|_| new_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
