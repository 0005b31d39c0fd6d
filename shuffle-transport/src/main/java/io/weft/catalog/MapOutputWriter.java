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
 * Takes one map task's chunks and publishes them together. An allocated chunk belongs to the caller
 * until it is committed or released; closing without publishing frees every chunk. For one task
 * thread.
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
  private final SealingRooms rooms;
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
    this.rooms = new SealingRooms(arena, catalog.sealer());
  }

  /**
   * Allocates a chunk to fill, not yet part of any partition. Its contents are undefined. Where
   * private memory is full it waits for what others give back: the caller commits its own chunks
   * before.
   *
   * @param bytes 1 to 2^31 - 64
   * @return an extent of at least that many bytes
   * @throws IOException if the arena is full, with the settings to raise, or the exchange was
   *     closed or the shuffle removed meanwhile
   */
  public Extent allocate(long bytes) throws IOException {
    return allocate(bytes, Use.TRANSIENT);
  }

  /** As {@link #allocate}, but fails at once where private memory is full. */
  public Extent allocateNow(long bytes) throws IOException {
    return allocate(bytes, Use.TRANSIENT_NOW);
  }

  private Extent allocate(long bytes, Use use) throws IOException {
    require(State.OPEN, "allocate");
    if (catalog.isClosed() || shuffle.isRemoved()) {
      throw new IOException(
          key + " cannot grow: its shuffle was removed, or the exchange closed, meanwhile");
    }
    Extent chunk = arena.allocate(bytes, use);
    boolean owned = false;
    try {
      rooms.prepare(chunk, key);
      owned = uncommitted.add(chunk);
    } finally {
      if (!owned) {
        arena.free(chunk);
      }
    }
    return chunk;
  }

  /**
   * Adds what this thread does, until the output is closed, before it waits for memory that others
   * give back, here or as a reader: its open chunks may be what those others wait for.
   *
   * @param commit commits chunks
   */
  public void beforeWaiting(Runnable commit) {
    registrations.add(arena.waiters().beforeThisThreadWaits(commit));
  }

  /**
   * Whether the chunks that are not committed yet hold as much private memory as one task should:
   * it then commits them before it allocates another one. Never where nothing is sealed.
   */
  public boolean isCrowded() {
    return rooms.isCrowded();
  }

  /**
   * Allocates a place for a chunk that comes sealed, to be given to {@link #commitSealed}.
   *
   * @param bytes of the sealed chunk, 1 to 2^31 - 64
   * @throws IOException as {@link #allocate} does
   */
  public Extent allocateSealed(long bytes) throws IOException {
    require(State.OPEN, "allocate");
    Extent place = arena.allocate(bytes, Use.DISK);
    uncommitted.add(place);
    return place;
  }

  /**
   * Makes a chunk the next one of a partition and gives back what it did not use.
   *
   * @param chunk as {@link #allocate} returned it; it must not be used any more
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
    boolean sealed = chunk.kind() == MemoryKind.PRIVATE;
    long stored = sealed ? SealedFormat.sealedBytes(usedBytes) : usedBytes;
    Extent kept =
        sealed
            ? rooms.seal(committed.nextName(key, partition), chunk, usedBytes)
            : arena.trim(chunk, usedBytes);
    uncommitted.remove(chunk);
    committed.add(partition, kept, usedBytes, rows, diskChecksum(kept, stored), sealed);
  }

  /**
   * As {@link #commit}, for a chunk that came sealed.
   *
   * @param place as {@link #allocateSealed} returned it, filled
   * @param bytes of the chunk when it is opened
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

  /** Memory is trusted, a disk is not. The bytes were just written, so they are still cached. */
  private int diskChecksum(Extent chunk, long storedBytes) {
    return chunk.kind() == MemoryKind.DISK && catalog.checksums()
        ? Checksum.of(arena.view(chunk).slice(0, (int) storedBytes))
        : Checksum.NONE;
  }

  /** Gives back a chunk that was not committed. */
  public void release(Extent chunk) {
    require(State.OPEN, "release");
    requireOwned(chunk);
    uncommitted.remove(chunk);
    free(chunk);
  }

  private void free(Extent chunk) {
    rooms.giveUp(chunk);
    arena.free(chunk);
  }

  private void requireOwned(Extent chunk) {
    if (!uncommitted.contains(chunk)) {
      throw new IllegalArgumentException(
          key + ": " + chunk + " was not allocated here, or is committed or released");
    }
  }

  /** Bytes committed so far, by partition. */
  public long[] partitionBytes() {
    return committed.partitionBytes();
  }

  /**
   * Lets readers see the output, at once and as a whole. Chunks that were neither committed nor
   * released are freed.
   *
   * @throws IOException if the index cannot be written or the shuffle was removed meanwhile; the
   *     output is then freed by {@link #close()}
   */
  public void publish() throws IOException {
    require(State.OPEN, "publish");
    freeUncommitted();
    catalog.publish(shuffle, committed.sorted(key, catalog.segmentBytes(), arena));
    state = State.PUBLISHED;
  }

  /** Without {@link #publish()}, frees everything. Can be repeated. */
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
