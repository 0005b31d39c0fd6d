/**
 * Reads blocks: in place from shared memory, or over the network with flow control and retries.
 *
 * <p>Start with {@code BlockReaders}, which opens a {@code ChunkReader} for a list of {@code
 * BlockRequest}s. One thread at a time uses a reader, and only this thread waits. Netty's threads
 * deliver answers through the reader's queue. The reader owns its receive memory. It frees the
 * memory of a request when its chunks were read. It frees all memory when it is closed, the streams
 * have ended and the thread that reads has noticed the close or has ended.
 */
package io.weft.shuffle.fetch;
