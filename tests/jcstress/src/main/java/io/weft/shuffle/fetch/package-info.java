/**
 * Reads blocks: in place from shared memory, or over the network with flow control and retries.
 *
 * <p>Enter by {@code BlockReaders}, which opens a {@code ChunkReader} for a list of {@code
 * BlockRequest}s. A reader belongs to one task thread, the only thread that waits. Netty's threads
 * deliver answers through the reader's queue. The reader owns its receive memory. It frees the memory
 * of a request when the task has read its chunks, and all memory when it is closed and the streams
 * have ended.
 */
package io.weft.shuffle.fetch;
