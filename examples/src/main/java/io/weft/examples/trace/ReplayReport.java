package io.weft.examples.trace;

import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * The report of {@code weft replay}.
 *
 * @param when the time of the end, in ISO form
 * @param javaVersion of the replay
 * @param system the operating system of the replay
 * @param cores of this machine
 * @param executors of the trace
 * @param scale factor of all sizes
 * @param settings of the replay
 * @param shuffles in the order of the replay
 * @param transfers of arrays; none in most traces
 */
public record ReplayReport(
    String when,
    String javaVersion,
    String system,
    int cores,
    int executors,
    double scale,
    Map<String, String> settings,
    List<ReplayedShuffle> shuffles,
    ReplayedTransfers transfers)
    implements Report {
  public ReplayReport {
    shuffles = List.copyOf(shuffles);
  }

  /**
   * A shuffle in the trace and in each run of the replay.
   *
   * @param trace the figures of the trace
   * @param runs at least one
   */
  public record ReplayedShuffle(ShuffleTotals trace, List<ShuffleTotals> runs) {
    public ReplayedShuffle {
      runs = List.copyOf(runs);
    }

    /** The median over the runs. */
    double median(ToLongFunction<ShuffleTotals> figure) {
      return new Spread(runs.stream().map(run -> (double) figure.applyAsLong(run)).toList())
          .median();
    }
  }

  /**
   * The transfers in the trace and in each run of the replay.
   *
   * @param trace the figures of the trace
   * @param leftOut ends in the trace that failed, or of which only one was recorded
   * @param runs at least one
   */
  public record ReplayedTransfers(TransferTotals trace, int leftOut, List<TransferTotals> runs) {
    public ReplayedTransfers {
      runs = List.copyOf(runs);
    }

    /** The median over the runs. */
    double median(ToLongFunction<TransferTotals> figure) {
      return new Spread(runs.stream().map(run -> (double) figure.applyAsLong(run)).toList())
          .median();
    }
  }

  @Override
  public String fileName() {
    return "replay";
  }

  /** Always: differences are the result, not a failure. */
  @Override
  public boolean passed() {
    return true;
  }

  @Override
  public Text text() {
    List<TextTable> tables = new ArrayList<>();
    if (!shuffles.isEmpty()) {
      tables.add(shuffleTable());
    }
    if (transfers.trace().transfers() > 0) {
      tables.add(transferTable());
    }
    return new Text(heading(), tables, notes());
  }

  private TextTable shuffleTable() {
    TextTable table = new TextTable().column("shuffle", Align.LEFT).column("side", Align.LEFT);
    table.columns(
        Align.RIGHT, "written", "own", "same host", "network", "seconds", "read s", "wait s");
    for (int i = 0; i < shuffles.size(); i++) {
      if (i > 0) {
        table.separator();
      }
      ReplayedShuffle shuffle = shuffles.get(i);
      row(table, Integer.toString(shuffle.trace().shuffle()), "trace", shuffle, true);
      row(table, "", "replay", shuffle, false);
    }
    return table;
  }

  private TextTable transferTable() {
    TextTable table = new TextTable().column("transfers", Align.LEFT).column("side", Align.LEFT);
    table.columns(Align.RIGHT, "same host", "network", "seconds", "transfer s");
    TransferTotals trace = transfers.trace();
    table.row(
        Integer.toString(trace.transfers()),
        "trace",
        Units.bytes(trace.sameHost()),
        Units.bytes(trace.network()),
        Units.seconds(trace.wallNanos() / 1e9),
        Units.seconds(trace.transferNanos() / 1e9));
    table.row(
        "",
        "replay",
        Units.bytes(Math.round(transfers.median(TransferTotals::sameHost))),
        Units.bytes(Math.round(transfers.median(TransferTotals::network))),
        Units.seconds(transfers.median(TransferTotals::wallNanos) / 1e9),
        Units.seconds(transfers.median(TransferTotals::transferNanos) / 1e9));
    return table;
  }

  private static void row(
      TextTable table, String id, String side, ReplayedShuffle shuffle, boolean trace) {
    table.row(
        id,
        side,
        bytes(shuffle, trace, ShuffleTotals::written),
        bytes(shuffle, trace, ShuffleTotals::own),
        bytes(shuffle, trace, ShuffleTotals::sameHost),
        bytes(shuffle, trace, ShuffleTotals::network),
        seconds(shuffle, trace, ShuffleTotals::wallNanos),
        seconds(shuffle, trace, ShuffleTotals::readNanos),
        seconds(shuffle, trace, ShuffleTotals::waitNanos));
  }

  private static double value(
      ReplayedShuffle shuffle, boolean trace, ToLongFunction<ShuffleTotals> figure) {
    return trace ? figure.applyAsLong(shuffle.trace()) : shuffle.median(figure);
  }

  private static String bytes(
      ReplayedShuffle shuffle, boolean trace, ToLongFunction<ShuffleTotals> figure) {
    return Units.bytes(Math.round(value(shuffle, trace, figure)));
  }

  private static String seconds(
      ReplayedShuffle shuffle, boolean trace, ToLongFunction<ShuffleTotals> figure) {
    return Units.seconds(value(shuffle, trace, figure) / 1e9);
  }

  private String heading() {
    return String.format(
        Locale.ROOT,
        "Replay of %d executors in one process, Java %s, %s, %d cores, %d runs, scale %s, %s",
        executors,
        javaVersion,
        system,
        cores,
        transfers.runs().size(),
        scale,
        when);
  }

  private List<String> notes() {
    List<String> notes = new ArrayList<>();
    notes.add("Settings: " + (settings.isEmpty() ? "defaults" : settings));
    if (!shuffles.isEmpty()) {
      notes.add(
          "seconds: from the first read of a shuffle to the end of its last. The trace has the work"
              + " of tasks in it, the replay has not.");
      notes.add(
          "read s, wait s: time in which readers got blocks, and waited for the network, summed"
              + " over readers. Replay: medians.");
    }
    if (transfers.trace().transfers() > 0) {
      notes.add(
          "transfers: seconds from the first start to the last end; transfer s from the start of"
              + " each receive to its end, summed. The replay's arrays are in host memory.");
    }
    if (transfers.leftOut() > 0) {
      notes.add(
          "Left out: %d ends of transfers that failed, or whose other end was not recorded."
              .formatted(transfers.leftOut()));
    }
    return notes;
  }
}
