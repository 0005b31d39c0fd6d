package io.weft.shuffle.store;

import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SharedArena.Range;
import io.weft.shuffle.store.Checksum.ChecksumException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Moves the map outputs of a dead executor into this executor: their segments get a second name in
 * this executor's folder, and their indexes are published there. No byte of a chunk is copied. An
 * output whose index is damaged, or whose memory is missing or fails verification, is left out. For
 * one thread.
 */
public final class FolderAdoption {
  private final BlockCatalog catalog;
  private final SharedArena arena;
  private final Options options;

  /** Which chunks are verified. Only chunks on disk have checksums. */
  public enum Verify {
    /** None. */
    NONE,
    /** The first chunk on disk of each output. */
    SAMPLE,
    /** Every chunk on disk. */
    WHOLE
  }

  /**
   * The options of an adoption.
   *
   * @param verify the chunks on disk whose checksums are verified
   * @param inBudget whether adopted segments count in the budgets of this executor's memory
   * @param decrypts whether this executor has the key of encrypted chunks
   */
  public record Options(Verify verify, boolean inBudget, boolean decrypts) {}

  /**
   * The outputs of a dead executor that this one now has.
   *
   * @param fresh adopted now, and the bytes of memory of each
   * @param known that it had before
   * @param refusals why others were left out; one sentence each
   */
  public record Adopted(Map<BlockKey, Long> fresh, List<BlockKey> known, List<String> refusals) {
    /** Nothing yet. */
    public Adopted() {
      this(new HashMap<>(), new ArrayList<>(), new ArrayList<>());
    }

    /** All outputs that this executor has. */
    public List<BlockKey> all() {
      List<BlockKey> all = new ArrayList<>(fresh.keySet());
      all.addAll(known);
      return all;
    }
  }

  /** An output on its way. */
  private static final class Candidate {
    private final MapOutput index;
    private final Extent[] extents;
    private String refusal;

    Candidate(MapOutput index) {
      this.index = index;
      this.extents = new Extent[index.chunks()];
    }
  }

  /** A chunk of a candidate. */
  private record Chunk(Candidate of, int number) {}

  /** Adopts into this catalog and the arena of its chunks. */
  public FolderAdoption(BlockCatalog catalog, SharedArena arena, Options options) {
    this.catalog = catalog;
    this.arena = arena;
    this.options = options;
  }

  /**
   * Adopts outputs as far as possible. The folder stays as it is.
   *
   * @param needed the outputs to adopt
   * @param adopted receives each output when it is published, so that the caller knows of it even
   *     after an exception
   */
  public void adopt(DeadFolder dead, Collection<BlockKey> needed, Adopted adopted) {
    List<Candidate> candidates = read(dead, needed, adopted);
    try {
      segments(candidates).forEach((segment, chunks) -> map(dead.path(), segment, chunks));
      candidates.forEach(candidate -> publish(candidate, adopted));
    } finally {
      candidates.forEach(this::free);
    }
  }

  private List<Candidate> read(DeadFolder dead, Collection<BlockKey> needed, Adopted adopted) {
    List<Candidate> candidates = new ArrayList<>();
    for (BlockKey key : needed) {
      try {
        if (catalog.contains(key)) {
          adopted.known().add(key);
        } else {
          candidates.add(new Candidate(IndexFiles.read(dead.path(), key)));
        }
      } catch (IOException | RuntimeException e) {
        adopted.refusals().add(key + ": " + e);
      }
    }
    return candidates;
  }

  /** The chunks of all outputs by segment, because a segment is adopted as a whole. */
  private static Map<Integer, List<Chunk>> segments(List<Candidate> candidates) {
    Map<Integer, List<Chunk>> segments = new TreeMap<>();
    for (Candidate candidate : candidates) {
      for (int chunk = 0; chunk < candidate.index.chunks(); chunk++) {
        segments
            .computeIfAbsent(candidate.index.segment(chunk), unused -> new ArrayList<>())
            .add(new Chunk(candidate, chunk));
      }
    }
    return segments;
  }

  private void map(Path folder, int segment, List<Chunk> chunks) {
    List<Range> ranges =
        chunks.stream()
            .map(
                chunk ->
                    new Range(
                        chunk.of.index.offset(chunk.number),
                        chunk.of.index.storedBytes(chunk.number)))
            .toList();
    try {
      List<Extent> extents =
          arena.adopt(folder.resolve("segment-" + segment), ranges, !options.inBudget());
      for (int i = 0; i < extents.size(); i++) {
        chunks.get(i).of.extents[chunks.get(i).number] = extents.get(i);
      }
    } catch (IOException | RuntimeException e) {
      chunks.forEach(chunk -> chunk.of.refusal = "segment " + segment + ": " + e);
    }
  }

  /** Publishes a candidate, unless it is refused. */
  private void publish(Candidate candidate, Adopted adopted) {
    MapOutput index = candidate.index;
    try {
      Optional<String> refusal = refusal(candidate);
      if (refusal.isPresent()) {
        adopted.refusals().add(index.key() + ": " + refusal.get());
        return;
      }
      int[] segments = new int[index.chunks()];
      long bytes = 0;
      for (int chunk = 0; chunk < segments.length; chunk++) {
        segments[chunk] = candidate.extents[chunk].segment();
        bytes += candidate.extents[chunk].length();
      }
      if (catalog.adopt(index.inSegments(segments), candidate.extents.clone())) {
        Arrays.fill(candidate.extents, null);
        adopted.fresh().put(index.key(), bytes);
        return;
      }
      adopted.refusals().add(index.key() + ": its shuffle was removed");
    } catch (IOException | RuntimeException e) {
      adopted.refusals().add(index.key() + ": " + e);
    }
  }

  private Optional<String> refusal(Candidate candidate) throws ChecksumException {
    if (candidate.refusal != null) {
      return Optional.of(candidate.refusal);
    }
    boolean verified = options.verify() == Verify.NONE;
    for (int chunk = 0; chunk < candidate.index.chunks(); chunk++) {
      if (candidate.index.isEncrypted(chunk) && !options.decrypts()) {
        return Optional.of("it is encrypted, and this executor has no key");
      }
      if (!verified && candidate.index.checksum(chunk) != Checksum.NONE) {
        verify(candidate, chunk);
        verified = options.verify() == Verify.SAMPLE;
      }
    }
    return Optional.empty();
  }

  private void verify(Candidate candidate, int chunk) throws ChecksumException {
    ByteBuffer whole = arena.view(candidate.extents[chunk]);
    int found = Checksum.of(whole.slice(0, (int) candidate.index.storedBytes(chunk)));
    if (found != candidate.index.checksum(chunk)) {
      throw new ChecksumException("chunk " + chunk, candidate.index.checksum(chunk), found);
    }
  }

  /** Frees the memory of an output that was not published. */
  private void free(Candidate candidate) {
    for (Extent extent : candidate.extents) {
      if (extent != null) {
        arena.free(extent);
      }
    }
  }
}
