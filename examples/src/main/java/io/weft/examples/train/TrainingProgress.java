package io.weft.examples.train;

import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.util.Locale;
import java.util.NavigableMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Shows how far a training in another process is, as a bar, from the losses that it writes. Its
 * thread, "weft-train-progress", is the only one to use the progress line until this is closed.
 */
final class TrainingProgress implements AutoCloseable {
  private static final int WIDTH = 30;
  private static final long PERIOD_MILLIS = 250;

  private final Progress progress;
  private final LossLog losses;
  private final String title;
  private final ScheduledExecutorService thread =
      Executors.newSingleThreadScheduledExecutor(
          work -> {
            Thread made = new Thread(work, "weft-train-progress");
            made.setDaemon(true);
            return made;
          });

  TrainingProgress(Progress progress, LossLog losses, String title) {
    this.progress = progress;
    this.losses = losses;
    this.title = title;
    var unused = thread.scheduleWithFixedDelay(this::show, 0, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
  }

  private void show() {
    try {
      NavigableMap<Long, Double> soFar = losses.read();
      if (!soFar.isEmpty()) {
        long step = soFar.lastKey() + 1;
        double loss = soFar.get(soFar.lastKey());
        progress.detail(line(title, step, losses.total(), loss));
      }
    } catch (IOException e) {
      progress.detail(title + ": " + e.getMessage());
    }
  }

  static String line(String title, long step, long total, double loss) {
    int done = total == 0 ? 0 : (int) (WIDTH * Math.min(step, total) / total);
    return String.format(
        Locale.ROOT,
        "%s %s%s step %,d of %,d, loss %.3f",
        title,
        "█".repeat(done),
        "░".repeat(WIDTH - done),
        step,
        total,
        loss);
  }

  @Override
  public void close() {
    thread.shutdownNow();
    try {
      if (!thread.awaitTermination(5, TimeUnit.SECONDS)) {
        progress.say("the progress of " + title + " is stuck");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
