package io.weft.collectives.replay;

/** What a replay does when a buffer is no longer where it was recorded. */
public enum MovedBuffers {
  /** The recording is changed to where its owner has it now, on the ranks that it moved on. */
  UPDATE,
  /** All ranks refuse the replay, naming the buffer and its rank. */
  REFUSE
}
