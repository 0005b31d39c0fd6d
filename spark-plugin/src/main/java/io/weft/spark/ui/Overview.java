package io.weft.spark.ui;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * What the Weft tab shows of an application as a whole. Immutable.
 *
 * @param version of Weft
 * @param state whether Weft is on, as sentences
 * @param shuffles number of shuffles so far, also of those that are no longer in the table
 * @param reasons by title of a table: how many shuffles, feeds or exchanges went another way, by
 *     reason
 * @param paths between running executors
 * @param pathsTitle title of their table
 * @param collectives that all executors made, also those that are no longer in the table
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record Overview(
    String version,
    String state,
    long shuffles,
    Map<String, Map<String, Long>> reasons,
    List<PathRow> paths,
    String pathsTitle,
    List<CollectiveRow> collectives) {
  public Overview {
    version = Objects.requireNonNullElse(version, "");
    state = Objects.requireNonNullElse(state, "");
    reasons = reasons == null ? Map.of() : reasons;
    paths = paths == null ? List.of() : List.copyOf(paths);
    pathsTitle = Objects.requireNonNullElse(pathsTitle, "");
    collectives = collectives == null ? List.of() : List.copyOf(collectives);
  }

  /**
   * Pairs of executors that use the same path for the same reason.
   *
   * @param what they exchange
   * @param example the first pair
   */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record PathRow(String what, String path, String reason, long pairs, String example) {}

  /**
   * Collectives by one algorithm, or transfers.
   *
   * @param algorithm its name, or "Transfers"
   * @param calls number of calls; of transfers, the arrays sent
   * @param bytes moved by them
   * @param nanos their time, added up over ranks; 0 for transfers
   */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record CollectiveRow(String algorithm, long calls, long bytes, long nanos) {}
}
