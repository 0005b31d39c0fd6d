/**
 * The operations of a communicator as values: what is done on which buffers. A value can be run,
 * submitted to a lane, put into a group, or recorded.
 *
 * <p>Immutable, hence thread-safe. The buffers are the caller's and have to stay until the
 * operation has ended.
 */
package io.weft.collectives.operation;
