package io.weft.crosshost;

/** Why a batch left. */
public enum BatchReason {
  /** It had enough bytes. */
  BYTES,
  /** It was old enough. */
  AGE,
  /** Somebody waited for one of its transfers. */
  NEED,
  /** Its transfers were not deferred. */
  CALL
}
