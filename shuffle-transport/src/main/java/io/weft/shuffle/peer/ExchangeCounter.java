package io.weft.shuffle.peer;

/** The counters of an exchange. Each counts from the start of the exchange. */
public enum ExchangeCounter {
  OUTPUTS_PUBLISHED("map outputs published"),
  BYTES_PUBLISHED("bytes of published map outputs"),
  BYTES_SPILLED("bytes of published map outputs on disk"),
  OUTPUTS_MIGRATED("map outputs received from decommissioned executors"),
  BYTES_MIGRATED("bytes of these map outputs"),
  OUTPUTS_ADOPTED("map outputs adopted of executors that died on this host"),
  BYTES_ADOPTED("bytes of these map outputs"),
  OUTPUTS_COPIED("map outputs copied to where they outlive their executor"),
  BYTES_COPIED("bytes of these map outputs"),
  COPIES_FAILED("map outputs that could not be copied"),
  COPIES_SKIPPED("map outputs not copied because too many waited or they waited too long"),
  COPY_BLOCKS_READ("blocks read from copies of map outputs"),
  COPY_BYTES_READ("bytes read from copies of map outputs"),
  LOCAL_BLOCKS("blocks of this executor read in place"),
  LOCAL_BYTES("bytes of this executor read in place"),
  SAME_HOST_BLOCKS("blocks of other executors on this host read in place"),
  SAME_HOST_BYTES("bytes of other executors on this host read in place"),
  REMOTE_BLOCKS("blocks received over the network"),
  REMOTE_BYTES("bytes received over the network"),
  REQUESTS("requests sent to peers over the network"),
  STREAMS("streams of blocks received over the network"),
  REQUESTS_FAILED("requests that ended without their blocks"),
  REQUESTS_SERVED("requests of peers answered"),
  BLOCKS_SERVED("blocks sent to peers"),
  BYTES_SERVED("bytes sent to peers"),
  REQUESTS_REFUSED("requests of peers refused"),
  REQUESTS_POSTPONED("requests that a busy peer refused, sent again later"),
  REQUESTS_HELD_BACK("requests that waited for the executor's limit on bytes in flight"),
  CHECKSUM_FAILURES("blocks and messages with a wrong checksum"),
  COMPRESSED_BYTES_BEFORE("bytes of blocks sent compressed, before compression"),
  COMPRESSED_BYTES_SENT("the same after compression"),
  WAITS("times a reader waited because no block had arrived"),
  WAIT_NANOS("nanoseconds of these waits"),
  BUSY_NANOS("nanoseconds requests waited for a busy peer"),
  HELD_BACK_NANOS("nanoseconds requests waited for the executor's limit"),
  INDEXES_READ("indexes of peers on this host read"),
  LEASES_TAKEN("leases taken on shuffles of peers on this host"),
  SEGMENTS_MAPPED("segments of peers on this host mapped"),
  SEGMENTS_UNMAPPED("segments of peers on this host unmapped"),
  BYTES_RETIRED("bytes that could not be freed at once because of readers"),
  BYTES_FREED("bytes of map outputs freed");

  private final String description;

  ExchangeCounter(String description) {
    this.description = description;
  }

  /** A one-line description for a table of metrics. */
  public String description() {
    return description;
  }
}
