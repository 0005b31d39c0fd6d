package io.weft.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CheckpointsTest {
  private static final List<ParameterSpec> MODEL =
      List.of(
          new ParameterSpec("w", DataType.FLOAT32, 70_000),
          new ParameterSpec("b", DataType.FLOAT32, 3));

  @TempDir Path folder;

  /** Parameters and optimiser after a number of steps. */
  private record Training(List<TypedBuffer> values, Adam adam) implements AutoCloseable {
    static Training after(int steps) {
      List<TypedBuffer> values =
          List.of(
              Buffers.random(DataType.FLOAT32, 70_000, 1, -1, 1),
              Buffers.random(DataType.FLOAT32, 3, 2, -1, 1));
      Training training = new Training(values, new Adam(MODEL, AdamOptions.DEFAULT));
      for (int step = 0; step < steps; step++) {
        training.step(step);
      }
      return training;
    }

    void step(int number) {
      adam.step(
          values,
          List.of(
              Buffers.random(DataType.FLOAT32, 70_000, 50 + number, -1, 1),
              Buffers.random(DataType.FLOAT32, 3, 70 + number, -1, 1)));
    }

    Path save(Checkpoints checkpoints, long epoch, long step) throws IOException {
      return checkpoints.save(new CheckpointPosition(epoch, step), MODEL, values, adam);
    }

    CheckpointPosition load(Checkpoints checkpoints) throws IOException {
      return checkpoints.loadNewest(MODEL, values, adam).orElse(CheckpointPosition.START);
    }

    void assertSame(Training other) {
      for (int i = 0; i < values.size(); i++) {
        assertThat(Buffers.read(values.get(i))).isEqualTo(Buffers.read(other.values.get(i)));
      }
      assertThat(adam.steps()).isEqualTo(other.adam.steps());
    }

    @Override
    public void close() {
      adam.close();
    }
  }

  private Checkpoints checkpoints() {
    return new Checkpoints(folder.resolve("checkpoints"), 2);
  }

  private List<String> files() throws IOException {
    try (Stream<Path> all = Files.list(folder.resolve("checkpoints"))) {
      return all.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  @Test
  void aTrainingResumesFromACheckpointWithTheSameResults() throws IOException {
    try (Training straight = Training.after(5);
        Training first = Training.after(3);
        Training second = Training.after(0)) {
      first.save(checkpoints(), 1, 3);
      assertThat(second.load(checkpoints())).isEqualTo(new CheckpointPosition(1, 3));
      second.assertSame(first);
      second.step(3);
      second.step(4);
      second.assertSame(straight);
    }
  }

  @Test
  void anEmptyFolderIsTheStart() throws IOException {
    try (Training training = Training.after(1);
        Training same = Training.after(1)) {
      assertThat(training.load(checkpoints())).isEqualTo(CheckpointPosition.START);
      training.assertSame(same);
    }
  }

  @Test
  void theNewestCountsAndTheOldestGo() throws IOException {
    try (Training training = Training.after(0)) {
      training.save(checkpoints(), 0, 900);
      training.save(checkpoints(), 1, 5);
      training.save(checkpoints(), 1, 20);
      assertThat(files())
          .containsExactly("checkpoint-000001-000000005.weft", "checkpoint-000001-000000020.weft");
      assertThat(training.load(checkpoints())).isEqualTo(new CheckpointPosition(1, 20));
    }
  }

  @ParameterizedTest
  @ValueSource(doubles = {0, 0.001, 0.5, 0.99999})
  void aTruncatedFileIsSkipped(double part) throws IOException {
    try (Training older = Training.after(1);
        Training newer = Training.after(2);
        Training loaded = Training.after(0)) {
      older.save(checkpoints(), 0, 1);
      Path torn = newer.save(checkpoints(), 0, 2);
      byte[] bytes = Files.readAllBytes(torn);
      Files.write(torn, Arrays.copyOf(bytes, (int) (bytes.length * part)));
      assertThat(loaded.load(checkpoints())).isEqualTo(new CheckpointPosition(0, 1));
      loaded.assertSame(older);
    }
  }

  @ParameterizedTest
  @ValueSource(doubles = {0.1, 0.5, 0.9})
  void aFlippedBitIsFoundInParametersAsInMoments(double place) throws IOException {
    try (Training older = Training.after(1);
        Training newer = Training.after(2);
        Training loaded = Training.after(0)) {
      older.save(checkpoints(), 0, 1);
      Path damaged = newer.save(checkpoints(), 0, 2);
      byte[] bytes = Files.readAllBytes(damaged);
      bytes[(int) (bytes.length * place)] ^= 4;
      Files.write(damaged, bytes);
      assertThat(loaded.load(checkpoints())).isEqualTo(new CheckpointPosition(0, 1));
      loaded.assertSame(older);
    }
  }

  @Test
  void aDamagedOnlyCheckpointLeavesEverythingAsItIs() throws IOException {
    try (Training saved = Training.after(2);
        Training training = Training.after(1);
        Training same = Training.after(1)) {
      Path damaged = saved.save(checkpoints(), 0, 2);
      byte[] bytes = Files.readAllBytes(damaged);
      bytes[bytes.length - 1] ^= 1;
      Files.write(damaged, bytes);
      assertThat(training.load(checkpoints())).isEqualTo(CheckpointPosition.START);
      training.assertSame(same);
    }
  }

  @Test
  void unfinishedFileIsNotACheckpoint() throws IOException {
    try (Training saved = Training.after(2);
        Training training = Training.after(0)) {
      Path file = saved.save(checkpoints(), 0, 2);
      Files.move(file, file.resolveSibling(file.getFileName() + ".unfinished"));
      assertThat(training.load(checkpoints())).isEqualTo(CheckpointPosition.START);
    }
  }

  @Test
  void aCheckpointOfAnotherModelIsSkipped() throws IOException {
    List<ParameterSpec> other = List.of(MODEL.get(0), new ParameterSpec("c", DataType.FLOAT32, 3));
    try (Training saved = Training.after(1);
        Adam adam = new Adam(other, AdamOptions.DEFAULT)) {
      saved.save(checkpoints(), 0, 1);
      assertThat(checkpoints().loadNewest(other, saved.values(), adam)).isEmpty();
      assertThat(adam.steps()).isZero();
    }
  }

  @Test
  void bothSizesMustMatch() {
    try (Training training = Training.after(0)) {
      List<TypedBuffer> wrong = List.of(training.values().get(0));
      assertThatThrownBy(
              () -> checkpoints().save(CheckpointPosition.START, MODEL, wrong, training.adam()))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> new Checkpoints(folder, 0))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
