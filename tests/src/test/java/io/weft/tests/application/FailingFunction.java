package io.weft.tests.application;

import io.weft.spark.feed.FeedFunction;
import io.weft.spark.feed.FeedTask;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A function whose rank 0 always fails in the same way, before it reaches the others.
 *
 * @param folder where each of its runs leaves a file
 */
public record FailingFunction(String folder, String text) implements FeedFunction<Long> {
  @Override
  public Long run(FeedTask task) throws IOException {
    if (task.rank() == 0) {
      Files.createTempFile(Path.of(folder), "run-", "");
      throw new IllegalArgumentException(text);
    }
    return task.steps();
  }
}
