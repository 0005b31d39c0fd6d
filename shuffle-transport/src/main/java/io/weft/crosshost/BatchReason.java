package io.weft.crosshost;

/** The reason why a batch was launched. */
public enum BatchReason {
  /** The batch had enough bytes. */
  BYTES,
  /** The batch was old enough. */
  AGE,
  /** A thread waited for one of the transfers. */
  NEED,
  /** The transfers were not deferred. */
  CALL
}
