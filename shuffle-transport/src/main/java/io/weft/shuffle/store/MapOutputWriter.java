package io.weft.shuffle.store;

import io.weft.device.probe.JfrModule;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.memory.Waiters;
import io.weft.shuffle.peer.ShuffleEvents.Publish;
import io.weft.shuffle.peer.ShuffleEvents.Spill;
import io.weft.shuffle.peer.ShuffleEvents.Write;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Optional;
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
  private final boolean migrated;
  private final BlockKey key;
  private final CommittedChunks committed;
  private final CiphertextReservations reservations;
  private final Set<Extent> uncommitted = Collections.newSetFromMap(new IdentityHashMap<>());
  private final List<Waiters.Registration> registrations = new ArrayList<>();
  private final Write traced;
  private State state = State.OPEN;

  /**
   * Starts without chunks.
   *
   * @param migrated whether another executor wrote the output, and recorded that
   */
  MapOutputWriter(
      BlockCatalog catalog,
      SharedArena arena,
      ShuffleOutputs shuffle,
      BlockKey key,
      int partitions,
      boolean migrated) {
    this.catalog = catalog;
    this.arena = arena;
    this.shuffle = shuffle;
    this.key = key;
    this.committed = new CommittedChunks(partitions);
    this.migrated = migrated;
    this.traced = JfrModule.PRESENT && !migrated ? Write.start() : null;
    this.reservations = new CiphertextReservations(arena, catalog.encryptor());
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
      reservations.reserve(chunk, key);
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
  public boolean isAtShare() {
    return reservations.isAtShare();
  }

  /**
   * Allocates disk for a chunk that arrives encrypted, for {@link #commitEncrypted}.
   *
   * @param bytes of the encrypted chunk, 1 to 2^31 - 64
   * @throws IOException as {@link #allocate} does
   */
  public Extent allocateEncrypted(long bytes) throws IOException {
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
    Spill spill = JfrModule.PRESENT ? Spill.start() : null;
    boolean encrypted = chunk.kind() == MemoryKind.PRIVATE;
    long stored = encrypted ? EncryptedChunkFormat.encryptedBytes(usedBytes) : usedBytes;
    Extent kept =
        encrypted
            ? reservations.encrypt(committed.nextName(key, partition), chunk, usedBytes)
            : arena.trim(chunk, usedBytes);
    uncommitted.remove(chunk);
    committed.add(partition, kept, usedBytes, rows, diskChecksum(kept, stored), encrypted);
    trace(spill, kept, partition, stored);
  }

  private void trace(Spill spill, Extent kept, int partition, long stored) {
    if (spill != null && kept.kind() == MemoryKind.DISK) {
      spill.shuffleId = key.shuffleId();
      spill.mapId = key.mapId();
      spill.partition = partition;
      spill.bytes = stored;
      spill.commit();
    }
  }

  /**
   * As {@link #commit}, for a chunk that arrived encrypted.
   *
   * @param place from {@link #allocateEncrypted}, filled
   * @param bytes of the decrypted chunk
   */
  public void commitEncrypted(int partition, Extent place, long bytes, int rows) {
    requirePartition(partition);
    requireOwned(place);
    long stored = EncryptedChunkFormat.encryptedBytes(bytes);
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
    reservations.release(chunk);
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
    Publish publish = JfrModule.PRESENT ? Publish.start() : null;
    catalog.publish(shuffle, committed.sorted(key, catalog.segmentBytes(), arena), !migrated);
    state = State.PUBLISHED;
    trace(publish);
  }

  private void trace(Publish publish) {
    long bytes = publish == null && traced == null ? 0 : committed.bytes();
    if (publish != null) {
      publish.shuffleId = key.shuffleId();
      publish.mapId = key.mapId();
      publish.bytes = bytes;
      publish.commit();
    }
    if (traced != null) {
      traced.shuffleId = key.shuffleId();
      traced.mapId = key.mapId();
      traced.partitions = committed.partitions();
      traced.chunks = committed.count;
      traced.bytes = bytes;
      traced.commit();
    }
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

  /** Collects the chunks of a map output in commit order and sorts them by partition at the end. */
  static final class CommittedChunks {
    private final long[] partitionBytes;
    private final int[] partitionChunks;
    private int count;
    private int[] partition = new int[16];
    private int[] rows = new int[16];
    private int[] checksum = new int[16];
    private long[] bytes = new long[16];
    private Extent[] extents = new Extent[16];

    CommittedChunks(int partitions) {
      partitionBytes = new long[partitions];
      partitionChunks = new int[partitions];
    }

    /**
     * Adds a chunk and takes ownership of its extent.
     *
     * @param usedBytes of the plain chunk
     * @param sum checksum of the stored bytes if they are on disk
     */
    void add(
        int toPartition,
        Extent extent,
        long usedBytes,
        int rowCount,
        int sum,
        boolean isEncrypted) {
      if (count == partition.length) {
        grow();
      }
      partition[count] = toPartition;
      rows[count] = rowCount;
      checksum[count] = sum;
      bytes[count] = isEncrypted ? usedBytes | MapOutput.ENCRYPTED : usedBytes;
      extents[count] = extent;
      count++;
      partitionBytes[toPartition] += usedBytes;
      partitionChunks[toPartition]++;
    }

    private void grow() {
      int capacity = Math.multiplyExact(count, 2);
      partition = Arrays.copyOf(partition, capacity);
      rows = Arrays.copyOf(rows, capacity);
      checksum = Arrays.copyOf(checksum, capacity);
      bytes = Arrays.copyOf(bytes, capacity);
      extents = Arrays.copyOf(extents, capacity);
    }

    int partitions() {
      return partitionBytes.length;
    }

    long[] partitionBytes() {
      return partitionBytes.clone();
    }

    long bytes() {
      return Arrays.stream(partitionBytes).sum();
    }

    /** The name of the next chunk of a partition, by its position after sorting. */
    ChunkName nextName(BlockKey key, int ofPartition) {
      return new ChunkName(key.shuffleId(), key.mapId(), ofPartition, partitionChunks[ofPartition]);
    }

    /** Sorts the chunks by partition. Keeps the order within each partition. */
    OwnedOutput sorted(BlockKey key, long segmentBytes, SharedArena arena) {
      int[] firstChunk = firstChunks();
      int[] next = firstChunk.clone();
      Extent[] sorted = new Extent[count];
      int[] segment = new int[count];
      int[] sortedRows = new int[count];
      int[] sortedChecksum = new int[count];
      long[] offset = new long[count];
      long[] length = new long[count];
      for (int i = 0; i < count; i++) {
        int to = next[partition[i]]++;
        sorted[to] = extents[i];
        segment[to] = extents[i].segment();
        offset[to] = extents[i].offset();
        sortedRows[to] = rows[i];
        sortedChecksum[to] = checksum[i];
        length[to] = bytes[i];
      }
      MapOutput index =
          new MapOutput(
              key, segmentBytes, firstChunk, segment, sortedRows, sortedChecksum, offset, length);
      return new OwnedOutput(arena, index, sorted);
    }

    private int[] firstChunks() {
      int[] first = new int[partitions() + 1];
      for (int p = 0; p < partitions(); p++) {
        first[p + 1] = first[p] + partitionChunks[p];
      }
      return first;
    }

    /** Frees all memory. */
    void free(SharedArena arena) {
      for (int i = 0; i < count; i++) {
        arena.free(extents[i]);
      }
      count = 0;
    }
  }

  /**
   * Reserves disk for the ciphertext of chunks in private memory, so that every allocated chunk can
   * be encrypted. For one task thread.
   */
  static final class CiphertextReservations {
    private final SharedArena arena;
    private final Optional<ChunkEncryptor> encryptor;
    private final IdentityHashMap<Extent, Extent> reservations = new IdentityHashMap<>();
    private long privateBytes;

    CiphertextReservations(SharedArena arena, Optional<ChunkEncryptor> encryptor) {
      this.arena = arena;
      this.encryptor = encryptor;
    }

    /**
     * Reserves disk for a chunk in private memory. Does nothing for other chunks.
     *
     * @throws IOException if the disk budget is used up, or the chunk is too long for encryption
     */
    void reserve(Extent chunk, BlockKey key) throws IOException {
      if (chunk.kind() != MemoryKind.PRIVATE) {
        return;
      }
      if (chunk.length() > EncryptedChunkFormat.MAX_BYTES) {
        throw new IOException(
            "%s: a chunk of %d bytes is too long for encryption; at most %d bytes are possible"
                .formatted(key, chunk.length(), EncryptedChunkFormat.MAX_BYTES));
      }
      reservations.put(
          chunk, arena.allocate(EncryptedChunkFormat.encryptedBytes(chunk.length()), Use.DISK));
      privateBytes += chunk.length();
    }

    /**
     * Whether the task holds its share. It may exceed the share by one chunk. The rest is for
     * readers.
     */
    boolean isAtShare() {
      return !reservations.isEmpty() && privateBytes >= arena.transientShare();
    }

    /**
     * Encrypts a chunk to its reservation and frees the chunk. The caller then owns the
     * reservation.
     */
    Extent encrypt(ChunkName name, Extent chunk, long usedBytes) {
      Extent reserved = reservations.get(chunk);
      ByteBuffer used = arena.view(chunk).slice(0, (int) usedBytes);
      encryptor.orElseThrow().encrypt(name, used, arena.view(reserved));
      forget(chunk);
      arena.free(chunk);
      return arena.trim(reserved, EncryptedChunkFormat.encryptedBytes(usedBytes));
    }

    /** Frees a chunk's reservation, if it has one. */
    void release(Extent chunk) {
      Extent reserved = forget(chunk);
      if (reserved != null) {
        arena.free(reserved);
      }
    }

    private Extent forget(Extent chunk) {
      Extent reserved = reservations.remove(chunk);
      privateBytes -= reserved == null ? 0 : chunk.length();
      return reserved;
    }
  }
}
