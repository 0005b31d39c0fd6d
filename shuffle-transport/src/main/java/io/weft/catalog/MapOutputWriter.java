package io.weft.catalog;

import io.weft.encryption.SealedFormat;
import io.weft.integrity.Checksum;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.memory.Waiters;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/**
 * Collects the chunks of one map task and publishes them together. The caller owns an allocated
 * chunk until it is committed or released. Closing without publishing frees every chunk. For one
 * task thread.
 */
public final class MapOutputWriter implements AutoCloseable {
  private enum State {
    OPEN,
    PUBLISHED,
    CLOSED
  }

  private final BlockCatalog catalog;
  private final SharedArena arena;
  private final ShuffleOutputs shuffle;
  private final BlockKey key;
  private final CommittedChunks committed;
  private final SealingRooms reservations;
  private final Set<Extent> uncommitted = Collections.newSetFromMap(new IdentityHashMap<>());
  private final List<Waiters.Registration> registrations = new ArrayList<>();
  private State state = State.OPEN;

  MapOutputWriter(
      BlockCatalog catalog,
      SharedArena arena,
      ShuffleOutputs shuffle,
      BlockKey key,
      int partitions) {
    this.catalog = catalog;
    this.arena = arena;
    this.shuffle = shuffle;
    this.key = key;
    this.committed = new CommittedChunks(partitions);
    this.reservations = new SealingRooms(arena, catalog.sealer());
  }

  /**
   * Allocates a chunk to fill, which belongs to no partition yet. Its contents are undefined. If
   * private memory is full, waits until other threads free some. The caller must commit its own
   * chunks before.
   *
   * @param bytes 1 to 2^31 - 64
   * @return an extent of at least that many bytes
   * @throws IOException if the arena is full (the message names the settings to raise), if the
   *     exchange is closed, or if the shuffle is removed
   */
  public Extent allocate(long bytes) throws IOException {
    return allocate(bytes, Use.TRANSIENT);
  }

  /** As {@link #allocate}, but fails at once if private memory is full. */
  public Extent allocateNow(long bytes) throws IOException {
    return allocate(bytes, Use.TRANSIENT_NOW);
  }

  private Extent allocate(long bytes, Use use) throws IOException {
    require(State.OPEN, "allocate");
    if (catalog.isClosed() || shuffle.isRemoved()) {
      throw new IOException(
          key + " cannot grow: its shuffle was removed, or the exchange was closed");
    }
    Extent chunk = arena.allocate(bytes, use);
    boolean owned = false;
    try {
      reservations.prepare(chunk, key);
      owned = uncommitted.add(chunk);
    } finally {
      if (!owned) {
        arena.free(chunk);
      }
    }
    return chunk;
  }

  /**
   * Registers an action that runs before this thread waits for memory, here or as a reader. Other
   * threads may wait for the memory of its open chunks. Valid until the output is closed.
   *
   * @param commit commits the open chunks
   */
  public void beforeWaiting(Runnable commit) {
    registrations.add(arena.waiters().beforeThisThreadWaits(commit));
  }

  /**
   * Whether the uncommitted chunks hold as much private memory as one task may use. The caller then
   * commits them before it allocates another one. Always false without encryption.
   */
  public boolean isCrowded() {
    return reservations.isCrowded();
  }

  /**
   * Allocates disk for a chunk that arrives encrypted, for {@link #commitSealed}.
   *
   * @param bytes of the encrypted chunk, 1 to 2^31 - 64
   * @throws IOException as {@link #allocate} does
   */
  public Extent allocateSealed(long bytes) throws IOException {
    require(State.OPEN, "allocate");
    Extent place = arena.allocate(bytes, Use.DISK);
    uncommitted.add(place);
    return place;
  }

  /**
   * Appends a chunk to a partition and frees its unused bytes.
   *
   * @param chunk from {@link #allocate}; the caller must not use it afterwards
   * @param usedBytes from its start, 1 to its length
   * @param rows in it, at least 0
   */
  public void commit(int partition, Extent chunk, long usedBytes, int rows) {
    requirePartition(partition);
    if (usedBytes < 1 || usedBytes > chunk.length() || rows < 0) {
      throw new IllegalArgumentException(
          key + ": " + usedBytes + " bytes and " + rows + " rows in " + chunk);
    }
    requireOwned(chunk);
    boolean encrypted = chunk.kind() == MemoryKind.PRIVATE;
    long stored = encrypted ? SealedFormat.sealedBytes(usedBytes) : usedBytes;
    Extent kept =
        encrypted
            ? reservations.seal(committed.nextName(key, partition), chunk, usedBytes)
            : arena.trim(chunk, usedBytes);
    uncommitted.remove(chunk);
    committed.add(partition, kept, usedBytes, rows, diskChecksum(kept, stored), encrypted);
  }

  /**
   * As {@link #commit}, for a chunk that arrived encrypted.
   *
   * @param place from {@link #allocateSealed}, filled
   * @param bytes of the decrypted chunk
   */
  public void commitSealed(int partition, Extent place, long bytes, int rows) {
    requirePartition(partition);
    requireOwned(place);
    long stored = SealedFormat.sealedBytes(bytes);
    uncommitted.remove(place);
    Extent kept = arena.trim(place, stored);
    committed.add(partition, kept, bytes, rows, diskChecksum(kept, stored), true);
  }

  private void requirePartition(int partition) {
    require(State.OPEN, "commit");
    if (partition < 0 || partition >= committed.partitions()) {
      throw new IndexOutOfBoundsException(
          key + " has " + committed.partitions() + " partitions, not one numbered " + partition);
    }
  }

  /** Returns a checksum for a chunk on disk; memory needs none. The bytes are still cached. */
  private int diskChecksum(Extent chunk, long storedBytes) {
    return chunk.kind() == MemoryKind.DISK && catalog.checksums()
        ? Checksum.of(arena.view(chunk).slice(0, (int) storedBytes))
        : Checksum.NONE;
  }

  /** Frees a chunk that was not committed. */
  public void release(Extent chunk) {
    require(State.OPEN, "release");
    requireOwned(chunk);
    uncommitted.remove(chunk);
    free(chunk);
  }

  private void free(Extent chunk) {
    reservations.giveUp(chunk);
    arena.free(chunk);
  }

  private void requireOwned(Extent chunk) {
    if (!uncommitted.contains(chunk)) {
      throw new IllegalArgumentException(
          key + ": " + chunk + " was not allocated here, or was committed or released");
    }
  }

  /** The bytes committed so far, by partition. */
  public long[] partitionBytes() {
    return committed.partitionBytes();
  }

  /**
   * Makes the output visible to readers atomically. Frees chunks that were neither committed nor
   * released.
   *
   * @throws IOException if the index cannot be written or the shuffle was removed; {@link #close()}
   *     then frees the output
   */
  public void publish() throws IOException {
    require(State.OPEN, "publish");
    freeUncommitted();
    catalog.publish(shuffle, committed.sorted(key, catalog.segmentBytes(), arena));
    state = State.PUBLISHED;
  }

  /** Frees all chunks if the output was not published. Can be repeated. */
  @Override
  public void close() {
    registrations.forEach(Waiters.Registration::close);
    registrations.clear();
    if (state == State.OPEN) {
      freeUncommitted();
      committed.free(arena);
    }
    state = State.CLOSED;
  }

  private void freeUncommitted() {
    uncommitted.forEach(this::free);
    uncommitted.clear();
  }

  private void require(State expected, String action) {
    if (state != expected) {
      throw new IllegalStateException(key + " is " + state + ": too late to " + action);
    }
  }
}
