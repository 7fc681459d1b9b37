//! What a key-value store may get wrong, and what catches it.

use KeyValueDefect as Defect;

/// What a careless store may get wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyValueDefect {
    None,
    SpoiltValueFailsListings,
    SpoiltValueCannotBeReplaced,
    CreationOverwrites,
    UpdateIgnoresRevision,
    UpdateCreates,
    DeletionIgnoresRevision,
    DeletionOfNothingSucceeds,
    DeletionKeepsTheValue,
    RevisionsBeginAnewAfterDeletion,
    RevisionsAreComparedIn32Bits,
    RevisionsAreSigned,
    ConflictWritesAnyway,
    ConflictIsAnError,
    SuccessIsSometimesAConflict,
    AcknowledgedWriteIsSometimesLost,
    TheSameValueIsNoConflict,
    TwoWinners,
    DeletionIsNotAtomic,
    WritesInTwoSteps,
    CancelledWriteIsHalf,
    ListsByRawPrefix,
    ListMissesTheLast,
    ListIsUnsorted,
    ListHoldsOnePage,
    ListMissesWhatIsBeingMoved,
    ClustersShareKeys,
    ClustersAndKeysAreJoinedByDots,
    NamesIgnoreCase,
    NamesAreCut,
    NamesArePatterns,
    ValueIsCutAtTheLimit,
    ValueLimitIsNotChecked,
    ValueLimitIsUnfit,
    ValuesAreText,
    EmptyValueIsAbsent,
    ReadsAreNeverFresh,
    WatchMissesDeletions,
    WatchMissesOthers,
    WatchHasNoBeginning,
    WatchReachesOtherPrefixes,
    WatchReachesOtherClusters,
    WatchLosesABurst,
    WatchLeaksATask,
    IncarnationOfEachClient,
    ListingHangs,
    ReadWithoutStoreIsUnknown,
    WriteWithoutStoreIsUnfit,
    UnavailableWriteHappens,
    HangsWithoutStore,
    InterruptionLosesWrites,
    WatchDoesNotCatchUp,
    ReconnectIsNotTold,
}

/// Each defect, and the case that catches it.
pub(crate) const DEFECTS: &[(Defect, &str)] = &[
    (Defect::CreationOverwrites, "a_creation_needs_absence"),
    (
        Defect::UpdateIgnoresRevision,
        "an_update_needs_the_revision",
    ),
    (Defect::UpdateCreates, "a_deletion_needs_the_revision"),
    (
        Defect::DeletionIgnoresRevision,
        "a_deletion_needs_the_revision",
    ),
    (
        Defect::DeletionOfNothingSucceeds,
        "a_deletion_needs_the_revision",
    ),
    (
        Defect::DeletionKeepsTheValue,
        "a_deletion_needs_the_revision",
    ),
    (
        Defect::RevisionsBeginAnewAfterDeletion,
        "a_deletion_needs_the_revision",
    ),
    (
        Defect::RevisionsAreComparedIn32Bits,
        "impossible_revisions_are_conflicts",
    ),
    (
        Defect::RevisionsAreSigned,
        "impossible_revisions_are_conflicts",
    ),
    (Defect::ConflictWritesAnyway, "a_creation_needs_absence"),
    (Defect::ConflictIsAnError, "a_creation_needs_absence"),
    (
        Defect::SuccessIsSometimesAConflict,
        "clusters_never_see_each_other",
    ),
    (
        Defect::AcknowledgedWriteIsSometimesLost,
        "clusters_never_see_each_other",
    ),
    (Defect::TheSameValueIsNoConflict, "a_creation_needs_absence"),
    (Defect::TwoWinners, "concurrent_writes_form_one_chain"),
    (
        Defect::DeletionIsNotAtomic,
        "concurrent_writes_form_one_chain",
    ),
    (
        Defect::CancelledWriteIsHalf,
        "a_cancelled_write_happens_once_or_never",
    ),
    (
        Defect::WritesInTwoSteps,
        "concurrent_increments_are_all_counted",
    ),
    (Defect::ListsByRawPrefix, "distinct_names_never_meet"),
    (Defect::ListMissesTheLast, "clusters_never_see_each_other"),
    (Defect::ListIsUnsorted, "clusters_never_see_each_other"),
    (Defect::ListHoldsOnePage, "a_listing_of_many_is_complete"),
    (
        Defect::ListMissesWhatIsBeingMoved,
        "a_listing_holds_what_stays_while_others_change",
    ),
    (Defect::ClustersShareKeys, "clusters_never_see_each_other"),
    (
        Defect::ClustersAndKeysAreJoinedByDots,
        "clusters_never_see_each_other",
    ),
    (Defect::NamesIgnoreCase, "distinct_names_never_meet"),
    (Defect::NamesAreCut, "the_longest_keys_fit"),
    (Defect::NamesArePatterns, "distinct_names_never_meet"),
    (
        Defect::ValueIsCutAtTheLimit,
        "the_largest_value_fits_and_one_byte_more_is_refused",
    ),
    (
        Defect::ValueLimitIsNotChecked,
        "the_largest_value_fits_and_one_byte_more_is_refused",
    ),
    (
        Defect::ValueLimitIsUnfit,
        "the_largest_value_fits_and_one_byte_more_is_refused",
    ),
    (Defect::ValuesAreText, "values_come_back_byte_for_byte"),
    (Defect::EmptyValueIsAbsent, "values_come_back_byte_for_byte"),
    (Defect::ReadsAreNeverFresh, "a_creation_needs_absence"),
    (
        Defect::WatchMissesDeletions,
        "a_watch_sees_changes_of_others",
    ),
    (Defect::WatchMissesOthers, "a_watch_sees_changes_of_others"),
    (
        Defect::WatchHasNoBeginning,
        "a_watch_begins_with_what_is_there",
    ),
    (
        Defect::WatchReachesOtherPrefixes,
        "a_watch_begins_with_what_is_there",
    ),
    (
        Defect::WatchReachesOtherClusters,
        "a_watch_keeps_to_its_prefix_and_cluster",
    ),
    (Defect::WatchLosesABurst, "watches_converge_under_a_burst"),
    (Defect::WatchLeaksATask, "dropped_watches_end"),
    (Defect::IncarnationOfEachClient, "a_store_describes_itself"),
    (Defect::ListingHangs, "clusters_never_see_each_other"),
    (
        Defect::ReadWithoutStoreIsUnknown,
        "operations_fail_in_time_and_work_again",
    ),
    (
        Defect::WriteWithoutStoreIsUnfit,
        "operations_fail_in_time_and_work_again",
    ),
    (
        Defect::UnavailableWriteHappens,
        "acknowledged_writes_survive_an_interruption",
    ),
    (
        Defect::HangsWithoutStore,
        "operations_fail_in_time_and_work_again",
    ),
    (
        Defect::InterruptionLosesWrites,
        "a_watch_catches_up_after_an_interruption",
    ),
    (
        Defect::WatchDoesNotCatchUp,
        "a_watch_catches_up_after_an_interruption",
    ),
    (
        Defect::ReconnectIsNotTold,
        "operations_fail_in_time_and_work_again",
    ),
    (
        Defect::SpoiltValueFailsListings,
        "a_spoilt_value_harms_no_other_key",
    ),
    (
        Defect::SpoiltValueCannotBeReplaced,
        "a_spoilt_value_can_be_replaced_and_deleted",
    ),
];
