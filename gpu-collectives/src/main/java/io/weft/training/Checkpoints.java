package io.weft.training;

import io.weft.collectives.TypedBuffer;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A folder of checkpoints. A checkpoint holds the parameters, the optimiser's state, and the
 * progress of the training.
 *
 * <p>Saves are atomic: a file is written under another name, forced to disk and renamed. Every part
 * has a checksum. {@link #loadNewest} skips a damaged checkpoint with a warning and reads the one
 * before it. One process writes; any process may read. Not thread-safe.
 */
public final class Checkpoints {
  private static final Logger LOG = LoggerFactory.getLogger(Checkpoints.class);
  private static final long MAGIC = 0x31_5450_4b43_5457L;
  private static final int VERSION = 1;
  private static final Pattern NAME = Pattern.compile("checkpoint-(\\d{1,18})-(\\d{1,18})\\.weft");
  private static final String UNFINISHED = ".unfinished";

  private final Path folder;
  private final int keep;

  /**
   * Opens a folder of checkpoints. The first save creates it.
   *
   * @param folder that every process can read that may resume the training
   * @param keep how many of the newest checkpoints stay, 1 or more; 2 survive damage to the newest
   */
  public Checkpoints(Path folder, int keep) {
    if (keep < 1) {
      throw new IllegalArgumentException("keeping " + keep + " checkpoints keeps none");
    }
    this.folder = folder;
    this.keep = keep;
  }

  /** One of the folder's files. */
  private record Entry(CheckpointPosition position, Path file) {}

  /**
   * Writes a checkpoint, which replaces one of the same position, and deletes the oldest above the
   * limit.
   *
   * @param values of the parameters, in order
   * @return the file
   */
  public Path save(
      CheckpointPosition position,
      List<ParameterSpec> parameters,
      List<TypedBuffer> values,
      Adam optimizer)
      throws IOException {
    requireFit(parameters, values);
    Files.createDirectories(folder);
    String name = "checkpoint-%06d-%09d.weft".formatted(position.epoch(), position.step());
    Path unfinished = folder.resolve(name + UNFINISHED);
    try (FileChannel channel =
        FileChannel.open(
            unfinished,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      write(channel, position, parameters, values);
      optimizer.stateTo(channel);
      channel.force(true);
    }
    Path file = folder.resolve(name);
    Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
    forceFolder();
    deleteOld(position);
    return file;
  }

  private static void requireFit(List<ParameterSpec> parameters, List<TypedBuffer> values) {
    if (parameters.size() != values.size()) {
      throw new IllegalArgumentException(
          values.size() + " values for " + parameters.size() + " parameters");
    }
    for (int i = 0; i < values.size(); i++) {
      parameters.get(i).requireFit("value", values.get(i));
    }
  }

  private static void write(
      FileChannel channel,
      CheckpointPosition position,
      List<ParameterSpec> parameters,
      List<TypedBuffer> values)
      throws IOException {
    StateOutput out = new StateOutput(channel, MAGIC, VERSION);
    out.number(position.epoch());
    out.number(position.step());
    out.number(parameters.size());
    for (int i = 0; i < parameters.size(); i++) {
      out.text(parameters.get(i).name());
      out.text(values.get(i).type().toString());
      out.memory(values.get(i));
    }
    out.finish();
  }

  /** Forces the folder to disk, so the rename survives a power loss. */
  private void forceFolder() throws IOException {
    try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }

  /**
   * Checkpoints of later positions belong to another training, so they do not count for this one.
   */
  private void deleteOld(CheckpointPosition saved) throws IOException {
    List<Entry> entries =
        newestFirst().stream().filter(entry -> entry.position().compareTo(saved) <= 0).toList();
    for (Entry old : entries.subList(Math.min(keep, entries.size()), entries.size())) {
      Files.deleteIfExists(old.file());
    }
  }

  /**
   * Loads the newest checkpoint that is complete and matches these parameters into them and the
   * optimiser. An invalid checkpoint changes nothing.
   *
   * @return its position; empty if there is no valid checkpoint
   * @throws IOException if the folder or a file cannot be read at all
   */
  public Optional<CheckpointPosition> loadNewest(
      List<ParameterSpec> parameters, List<TypedBuffer> values, Adam optimizer) throws IOException {
    requireFit(parameters, values);
    for (Entry entry : newestFirst()) {
      try {
        load(entry, parameters, values, optimizer);
        return Optional.of(entry.position());
      } catch (StateException e) {
        LOG.warn("Skipping checkpoint {}: {}", entry.file(), e.getMessage());
      }
    }
    return Optional.empty();
  }

  private List<Entry> newestFirst() throws IOException {
    List<Entry> entries = new ArrayList<>();
    if (!Files.isDirectory(folder)) {
      return entries;
    }
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        Matcher name = NAME.matcher(file.getFileName().toString());
        if (name.matches()) {
          long epoch = Long.parseLong(name.group(1));
          long step = Long.parseLong(name.group(2));
          entries.add(new Entry(new CheckpointPosition(epoch, step), file));
        }
      }
    }
    entries.sort(Comparator.comparing(Entry::position).reversed());
    return entries;
  }

  /** Reads the file twice: first to check it, then into the parameters. */
  private static void load(
      Entry entry, List<ParameterSpec> parameters, List<TypedBuffer> values, Adam optimizer)
      throws IOException {
    try (FileChannel channel = FileChannel.open(entry.file(), StandardOpenOption.READ)) {
      readParameters(channel, entry, parameters, values, false);
      Runnable takeOver = optimizer.readState(channel);
      channel.position(0);
      readParameters(channel, entry, parameters, values, true);
      takeOver.run();
    }
  }

  private static void readParameters(
      FileChannel channel,
      Entry entry,
      List<ParameterSpec> parameters,
      List<TypedBuffer> values,
      boolean keepThem)
      throws IOException {
    StateInput in = new StateInput(channel, "a checkpoint", MAGIC, VERSION);
    in.expect("epoch", entry.position().epoch());
    in.expect("step", entry.position().step());
    in.expect("number of parameters", parameters.size());
    for (int i = 0; i < parameters.size(); i++) {
      in.expect("name of parameter " + i, parameters.get(i).name());
      in.expect("type of " + parameters.get(i).name(), values.get(i).type().toString());
      if (keepThem) {
        in.memory(values.get(i));
      } else {
        in.skipMemory(values.get(i).bytes());
      }
    }
    in.finish();
  }
}
