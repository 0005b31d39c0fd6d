/**
 * The operations of a communicator as values: an operation and its buffers. A value can be run,
 * submitted to a lane, put into a group, or recorded.
 *
 * <p>Values are immutable and so thread-safe. The buffers belong to the caller and have to stay
 * until the operation has ended.
 */
package io.weft.collectives.operation;
