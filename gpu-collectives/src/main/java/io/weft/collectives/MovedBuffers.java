package io.weft.collectives;

/** The reaction of a replay to a buffer that has moved since it was recorded. */
public enum MovedBuffers {
  /** Updates the recording to the buffer's new address, on the ranks where it moved. */
  UPDATE,
  /** All ranks refuse the replay. The error names the buffer and its rank. */
  REFUSE
}
