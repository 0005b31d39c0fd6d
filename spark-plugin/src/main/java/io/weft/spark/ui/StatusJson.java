package io.weft.spark.ui;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.UncheckedIOException;
import java.util.List;

/** The contents of the Weft tab as JSON: the same pages of shuffles and executors. Stateless. */
final class StatusJson {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private StatusJson() {}

  /** The document. */
  private record Document(
      Overview overview,
      TableDocument<ShuffleRow> shuffles,
      TableDocument<ExecutorRow> executors,
      TrafficMatrix.Snapshot traffic,
      List<TimeLine.Event> events,
      List<SettingRow> settings) {}

  /**
   * A page of a table.
   *
   * @param total rows of the whole table
   */
  private record TableDocument<T>(long total, int page, int pageSize, List<T> rows) {}

  /** Renders the same pages as {@link StatusHtml}. */
  static String of(TabContents contents, TabRequest request) {
    Activity activity = contents.activity();
    ShuffleTable.ShufflePage page =
        activity
            .shuffles()
            .page(request.sort(), request.descending(), request.from(), request.pageSize());
    ExecutorTable.ExecutorPage executors =
        activity.executors().page(request.executorsFrom(), request.pageSize());
    return write(
        new Document(
            contents.overview().get(),
            new TableDocument<>(page.total(), request.page(), request.pageSize(), page.rows()),
            new TableDocument<>(
                executors.total(), request.executorPage(), request.pageSize(), executors.rows()),
            activity.traffic().snapshot(),
            activity.timeLine().events(),
            SettingRow.of(contents.conf())));
  }

  /** Writes an object as JSON. */
  static String write(Object value) {
    try {
      return MAPPER.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Reads an event that {@link #write} wrote. */
  static ActivityEvent read(String json) {
    try {
      return MAPPER.readValue(json, ActivityEvent.class);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException("a stored state of the Weft tab cannot be read", e);
    }
  }
}
