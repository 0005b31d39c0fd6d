package io.weft.shuffle.fetch;

import static io.weft.shuffle.peer.ExchangeCounter.CHECKSUM_FAILURES;
import static io.weft.shuffle.peer.ExchangeCounter.LOCAL_BLOCKS;
import static io.weft.shuffle.peer.ExchangeCounter.LOCAL_BYTES;
import static io.weft.shuffle.peer.ExchangeCounter.SAME_HOST_BLOCKS;
import static io.weft.shuffle.peer.ExchangeCounter.SAME_HOST_BYTES;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.fetch.BlockFetchException.FetchFailures;
import io.weft.shuffle.fetch.BlockFetchException.ReadPath;
import io.weft.shuffle.fetch.ChunkReader.CurrentChunk;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.Traffic.ReaderTraffic;
import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.shuffle.store.Checksum;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.ChunkDecryptor;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;
import io.weft.shuffle.store.EncryptionKey;
import io.weft.shuffle.store.MapOutput;
import io.weft.shuffle.store.PeerSegments.NotInPlaceException;
import io.weft.shuffle.store.ShuffleHold;
import io.weft.shuffle.store.ShuffleHold.LocatedOutput;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Optional;

/** Reads blocks in place. The caller owns the holds. For one thread. */
final class LocalBlocks implements AutoCloseable {
  private final FetchFailures failures;
  private final FetchListener listener;
  private final ExchangeCounters counters;
  private final NotInPlace notInPlace;
  private final LoadedChunks decrypted;
  private final ReaderTraffic traffic;
  private final ArrayDeque<Item> items = new ArrayDeque<>();

  /** A view of a chunk on disk that is verified or decrypted; null before the first one. */
  private ByteBuffer view;

  private BlockRequest request;
  private PeerAddress peer;
  private LocatedOutput output;
  private int partition;
  private int chunk;
  private int lastChunk;
  private long ownBlocks;
  private long ownBytes;
  private long peerBlocks;
  private long peerBytes;

  /** A request and the hold on its blocks. The peer is null for this executor's blocks. */
  private record Item(BlockRequest request, ShuffleHold hold, PeerAddress peer) {
    ReadPath path() {
      return peer == null ? ReadPath.OWN : ReadPath.SAME_HOST;
    }
  }

  /** Receives requests for blocks of a peer that cannot be read in place, with the reason. */
  interface NotInPlace {
    void fetch(BlockRequest request, PeerAddress peer, IOException reason);
  }

  /**
   * Starts without blocks.
   *
   * @param notInPlace receives requests for blocks of peers that cannot be read in place; null if
   *     that is an error
   * @param decrypted decrypts chunks and owns their memory; closed with this object
   */
  LocalBlocks(
      FetchFailures failures,
      FetchListener listener,
      ExchangeCounters counters,
      NotInPlace notInPlace,
      LoadedChunks decrypted) {
    this.failures = failures;
    this.listener = listener;
    this.counters = counters;
    this.notInPlace = notInPlace;
    this.decrypted = decrypted;
    this.traffic = new ReaderTraffic(counters.traffic());
  }

  /** Keeps the memory of all chunks until {@link #close()}. */
  void retainAll() {
    decrypted.retainAll();
  }

  /** Adds blocks of this executor, or of a peer on this host if the peer is not null. */
  void add(BlockRequest added, ShuffleHold hold, PeerAddress peer) {
    items.add(new Item(added, hold, peer));
  }

  /** Moves to the next chunk. Returns false if there is none. */
  boolean next(CurrentChunk current) throws BlockFetchException {
    decrypted.freePrevious();
    while (chunk == lastChunk) {
      Item item = items.poll();
      if (item == null) {
        return false;
      }
      open(item);
    }
    MapOutput index = output.index();
    while (chunk >= index.firstChunk(partition + 1)) {
      partition++;
    }
    long address = output.address(chunk);
    if (index.checksum(chunk) != Checksum.NONE) {
      verify(index);
    }
    if (index.isEncrypted(chunk)) {
      address = open(index);
    }
    current.set(request, partition, index.rows(chunk), address, index.length(chunk));
    chunk++;
    return true;
  }

  /** Decrypts a chunk. Its authentication tags replace a checksum. */
  private long open(MapOutput index) throws BlockFetchException {
    ByteBuffer encrypted = viewOf(output.address(chunk), index.storedBytes(chunk));
    try {
      return decrypted.decrypt(index.name(partition, chunk), encrypted, index.length(chunk));
    } catch (IOException e) {
      if (FetchFailures.isInterrupt(e)) {
        throw failures.interrupted(request.key().toString());
      }
      throw damaged(named(e));
    }
  }

  private IOException named(IOException cause) {
    String text = where() + ": " + cause.getMessage();
    return cause instanceof ChecksumException
        ? new ChecksumException(text)
        : new IOException(text, cause);
  }

  private String where() {
    return "chunk " + chunk + " (partition " + partition + "), on disk";
  }

  private ByteBuffer viewOf(long address, long bytes) {
    view = view == null ? ByteBuffer.allocateDirect(0) : view;
    Memory.aim(view, address, (int) bytes);
    return view;
  }

  /**
   * Verifies the checksum of a chunk on disk. Reading again would return the same pages, so a wrong
   * checksum is reported at once.
   */
  private void verify(MapOutput index) throws BlockFetchException {
    int found = Checksum.of(viewOf(output.address(chunk), index.storedBytes(chunk)));
    if (found != index.checksum(chunk)) {
      throw damaged(new ChecksumException(where(), index.checksum(chunk), found));
    }
  }

  private BlockFetchException damaged(IOException cause) {
    if (cause instanceof ChecksumException) {
      counters.increment(CHECKSUM_FAILURES);
    }
    ReadPath path = peer == null ? ReadPath.OWN : ReadPath.SAME_HOST;
    return failures.failure(request, partition, peer, path, cause);
  }

  private void open(Item item) throws BlockFetchException {
    LocatedOutput found = find(item);
    if (found == null) {
      return;
    }
    output = found;
    request = item.request();
    peer = item.peer();
    partition = request.startPartition();
    MapOutput index = output.index();
    chunk = index.firstChunk(partition);
    lastChunk = index.firstChunk(request.endPartition());
    count(item, index.blocks(partition, request.endPartition()));
  }

  /** Returns null if the request is fetched over the network instead. */
  private LocatedOutput find(Item item) throws BlockFetchException {
    BlockRequest wanted = item.request();
    try {
      LocatedOutput found = item.hold().output(wanted.key());
      if (wanted.endPartition() > found.index().partitions()) {
        throw new IOException("it has " + found.index().partitions() + " partitions");
      }
      return found;
    } catch (IOException e) {
      if (FetchFailures.isInterrupt(e)) {
        throw failures.interrupted(wanted.key().toString());
      }
      if (e instanceof NotInPlaceException && notInPlace != null) {
        notInPlace.fetch(wanted, item.peer(), e);
        return null;
      }
      throw failures.failure(wanted, wanted.startPartition(), item.peer(), item.path(), e);
    }
  }

  private void count(Item item, int blocks) {
    long bytes = output.index().bytes(request.startPartition(), request.endPartition());
    if (item.path() == ReadPath.OWN) {
      listener.local(blocks, bytes);
      ownBlocks += blocks;
      ownBytes += bytes;
      traffic.read(request.key().shuffleId(), Figure.OWN, request.executorId(), "", bytes);
    } else {
      listener.sameHost(blocks, bytes);
      peerBlocks += blocks;
      peerBytes += bytes;
      int shuffle = request.key().shuffleId();
      traffic.read(shuffle, Figure.SAME_HOST, peer.executorId(), peer.host(), bytes);
    }
  }

  /**
   * Frees memory and updates the counters of the exchange, once per reader because per block is
   * slow.
   */
  @Override
  public void close() {
    decrypted.close();
    counters.add(LOCAL_BLOCKS, ownBlocks);
    counters.add(LOCAL_BYTES, ownBytes);
    counters.add(SAME_HOST_BLOCKS, peerBlocks);
    counters.add(SAME_HOST_BYTES, peerBytes);
    traffic.flush();
  }

  /**
   * Decrypts or copies chunks into memory and owns that memory. Keeps the last two chunks, or all
   * of them. For the reader's thread.
   */
  static final class LoadedChunks implements AutoCloseable {
    private final SharedArena arena;
    private final ChunkDecryptor decryptor;

    /** The chunks that stay until the end. */
    private final ArrayDeque<Extent> kept = new ArrayDeque<>();

    private Extent current;
    private Extent previous;
    private boolean retained;

    /** Creates an empty set of chunks. */
    LoadedChunks(SharedArena arena, Optional<EncryptionKey> key) {
      this.arena = arena;
      this.decryptor = new ChunkDecryptor(key);
    }

    /** Keeps all chunks until {@link #close()}. */
    void retainAll() {
      retained = true;
    }

    /** Frees the chunk before the last one. */
    void freePrevious() {
      if (previous != null) {
        arena.free(previous);
      }
      previous = current;
      current = null;
    }

    /**
     * Decrypts a chunk.
     *
     * @param name of the chunk
     * @param encrypted the encrypted bytes
     * @param bytes of the decrypted chunk
     * @return its address, a multiple of 64
     * @throws IOException if the chunk is damaged or the key is wrong; an {@link
     *     InterruptedIOException} if the thread is interrupted while it waits for memory
     * @throws UncheckedIOException if this executor has no memory for it
     */
    long decrypt(ChunkName name, ByteBuffer encrypted, long bytes) throws IOException {
      return load(bytes, (chunk, keys) -> keys.decrypt(name, encrypted, chunk));
    }

    /** Fills the memory of a chunk. */
    interface ChunkSource {
      void fill(ByteBuffer chunk, ChunkDecryptor decryptor) throws IOException;
    }

    /**
     * Loads a chunk.
     *
     * @param bytes of the chunk
     * @param source fills exactly these bytes; throws what {@link #decrypt} throws
     * @return its address, a multiple of 64
     */
    long load(long bytes, ChunkSource source) throws IOException {
      Extent extent = allocate(bytes);
      boolean done = false;
      try {
        source.fill(arena.view(extent).slice(0, (int) bytes), decryptor);
        done = true;
      } finally {
        if (!done) {
          arena.free(extent);
        }
      }
      if (retained) {
        kept.add(extent);
      } else {
        current = extent;
      }
      return extent.address();
    }

    /** Retained chunks do not use the memory that is reserved for transient use. */
    private Extent allocate(long bytes) throws InterruptedIOException {
      try {
        return arena.allocate(bytes, retained ? Use.RETAINED : Use.TRANSIENT);
      } catch (ArenaFullException e) {
        throw new UncheckedIOException("no memory to load a chunk: " + e.getMessage(), e);
      }
    }

    /** Frees all memory. Can be repeated. */
    @Override
    public void close() {
      freePrevious();
      freePrevious();
      kept.forEach(arena::free);
      kept.clear();
    }
  }
}
