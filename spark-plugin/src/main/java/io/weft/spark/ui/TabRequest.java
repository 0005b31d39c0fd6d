package io.weft.spark.ui;

import java.util.Locale;
import java.util.function.UnaryOperator;

/**
 * What a request for the Weft tab asks for. Wrong values count as missing. Immutable.
 *
 * @param sort column that the shuffles are sorted by
 * @param descending whether the largest comes first
 * @param page of the shuffles, from 1
 * @param executorPage page of the executors, from 1
 * @param pageSize rows of a page
 */
record TabRequest(Column sort, boolean descending, int page, int executorPage, int pageSize) {
  static final int DEFAULT_PAGE_SIZE = 50;
  static final int MAX_PAGE_SIZE = 500;

  /** The columns of the table of shuffles that it can be sorted by. */
  enum Column {
    ID("Shuffle"),
    ROUTE("Route"),
    ATTEMPTS("Attempts"),
    RECOMPUTED("Outputs recomputed"),
    ADOPTED("Outputs adopted"),
    ROWS("Rows"),
    BATCHES("Batches"),
    WRITTEN("Written"),
    OWN("Read in place: own"),
    SAMEHOST("Read in place: same host"),
    NETWORK("Read: network"),
    GPU("Read: GPU"),
    DISK("On disk"),
    WAIT("Fetch wait"),
    LARGEST("Partitions: smallest – median – largest");

    private final String title;

    Column(String title) {
      this.title = title;
    }

    String title() {
      return title;
    }

    /** Its name in a request. */
    String key() {
      return name().toLowerCase(Locale.ROOT);
    }

    private static Column of(String key) {
      for (Column column : values()) {
        if (column.key().equals(key)) {
          return column;
        }
      }
      return ID;
    }
  }

  /**
   * Reads the parameters of a request.
   *
   * @param parameters returns the value of a parameter, or null
   */
  static TabRequest of(UnaryOperator<String> parameters) {
    String descending = parameters.apply("desc");
    return new TabRequest(
        Column.of(parameters.apply("sort")),
        descending == null || Boolean.parseBoolean(descending),
        number(parameters.apply("page"), 1, Integer.MAX_VALUE),
        number(parameters.apply("executorPage"), 1, Integer.MAX_VALUE),
        number(parameters.apply("pageSize"), DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE));
  }

  private static int number(String text, int missing, int most) {
    try {
      return text == null ? missing : Math.max(1, Math.min(most, Integer.parseInt(text)));
    } catch (NumberFormatException e) {
      return missing;
    }
  }

  /** Rows before the page of shuffles. */
  long from() {
    return (page - 1L) * pageSize;
  }

  /** Rows before the page of executors. */
  long executorsFrom() {
    return (executorPage - 1L) * pageSize;
  }

  /** A query for the same page with another order: a second click on a column turns it round. */
  String sortedBy(Column column) {
    boolean turned = column != sort || !descending;
    return new TabRequest(column, turned, 1, executorPage, pageSize).query();
  }

  String onPage(int shuffles) {
    return new TabRequest(sort, descending, shuffles, executorPage, pageSize).query();
  }

  String onExecutorPage(int executors) {
    return new TabRequest(sort, descending, page, executors, pageSize).query();
  }

  private String query() {
    StringBuilder query = new StringBuilder("?sort=").append(sort.key());
    query.append("&desc=").append(descending).append("&page=").append(page);
    query.append("&executorPage=").append(executorPage).append("&pageSize=").append(pageSize);
    return query.toString();
  }
}
