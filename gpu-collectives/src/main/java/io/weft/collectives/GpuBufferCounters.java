package io.weft.collectives;

/**
 * Counters of an executor's memory for buffers of GPU communicators, at one moment. Can be loaded
 * without a GPU.
 *
 * @param windows registered by communicators so far, one for each segment that they used
 * @param freshBytes bytes that were allocated so far
 * @param reusedBytes bytes that communicators got from earlier ones so far
 * @param usedBytes bytes in segments of communicators, also of closed buffers, or kept for good
 *     after a failure
 * @param idleBytes bytes that are kept for later communicators
 */
public record GpuBufferCounters(
    long windows, long freshBytes, long reusedBytes, long usedBytes, long idleBytes) {
  /** The counters of a process that has not opened its GPU. */
  public static final GpuBufferCounters NONE = new GpuBufferCounters(0, 0, 0, 0, 0);
}
