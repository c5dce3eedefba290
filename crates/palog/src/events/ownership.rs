//! Who holds a session, and what may be done without asking (spec 03, "Ownership", "Approvals").

use crate::envelope::Time;
use crate::events::EffectClass;
use crate::json::Str;
use crate::wire::wire;

wire! {
    /// `lease.acquired`: from here on the holder writes under a new epoch (spec 03).
    pub struct LeaseAcquired<'a> {
        /// The fencing token: greater than every one before it.
        epoch: u64,
        /// Who holds the session.
        holder: Str<'a>,
        /// For how many seconds, from the time of the event; absent = until it is released.
        ttl?: u64,
    }

    /// `lease.renewed`: the holder goes on (spec 03).
    pub struct LeaseRenewed<'a> {
        /// The epoch of the lease.
        epoch: u64,
        /// Who holds it.
        holder: Str<'a>,
        /// For how many seconds, from the time of the event; absent = until it is released.
        ttl?: u64,
    }

    /// `lease.released`: the holder gives the session up (spec 03).
    pub struct LeaseReleased<'a> {
        /// The epoch of the lease.
        epoch: u64,
        /// Who held it.
        holder?: Str<'a>,
        /// In the writer's words.
        reason?: Str<'a>,
    }

    /// `grant.added`: leave that stands until it is revoked (spec 03).
    pub struct GrantAdded<'a> {
        /// Id of the grant.
        grant: Str<'a>,
        /// Names of the tools that it is for; absent = any.
        names?: Vec<Str<'a>>,
        /// The most that what it is for can do; absent = anything.
        class?: EffectClass,
        /// What it allows to act on, in the vendor's words; absent = anything.
        target?: Str<'a>,
        /// The request for approval that it came out of.
        approval?: Str<'a>,
        /// The task that it was given for; absent = the session.
        task?: Str<'a>,
        /// Revision of the policy that it was given under.
        policy_revision?: Str<'a>,
        /// When it lapses. It lapses by an event only.
        expires?: Time<'a>,
    }

    /// `grant.revoked` (spec 03).
    pub struct GrantRevoked<'a> {
        /// The grant.
        grant: Str<'a>,
        /// In the writer's words.
        reason?: Str<'a>,
    }
}
