package io.weft.crosshost;

/** What transfers count, each from the start of the executor. */
public enum TransferCounter {
  CLIQUE_REQUESTS("times a round of new transfers needed the communicator of its clique"),
  CLIQUE_REUSES("of these, those that found it open from the round before"),
  CLIQUES_RETIRED("communicators that both ends gave up because they had nothing to transfer"),
  MANIFESTS("manifests sent, one for each round of a clique"),
  GROUPS("groups that moved payload, in both directions at once"),
  GROUPS_BEHIND_DEVICES(
      "of these, those that GPUs had before the work that writes their arrays was complete"),
  SENT("transfers sent"),
  RECEIVED("transfers received"),
  BYTES_SENT("bytes of transfers sent, as they travelled"),
  BYTES_RECEIVED("bytes of transfers received, as they travelled"),
  CHUNKS_ENCODED("chunks of arrays that were encoded for sending"),
  CHUNKS_DECODED("chunks of arrays that arrived and were decoded"),
  FAILED("transfers that failed"),
  BATCHES_BY_BYTES("batches that left because they had enough bytes"),
  BATCHES_BY_AGE("batches that left because they were old enough"),
  BATCHES_BY_NEED("batches that left because somebody waited"),
  BATCHES_BY_CALL("batches that left at once because their transfers were not deferred"),
  DEFINITION_WAITS("transfers whose source was not recorded yet when they left"),
  DEFINITION_WAIT_NANOS("nanoseconds that these stood in front of their clique"),
  PEER_WAIT_NANOS("nanoseconds in which lanes met and waited for their peers");

  private final String description;

  TransferCounter(String description) {
    this.description = description;
  }

  /** One line for a table of metrics. */
  public String description() {
    return description;
  }

  static TransferCounter of(BatchReason reason) {
    return switch (reason) {
      case BYTES -> BATCHES_BY_BYTES;
      case AGE -> BATCHES_BY_AGE;
      case NEED -> BATCHES_BY_NEED;
      case CALL -> BATCHES_BY_CALL;
    };
  }
}
