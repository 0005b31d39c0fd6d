package io.weft.examples.tpch;

import io.trino.tpch.TpchTable;
import io.weft.examples.side.SideTask;
import io.weft.examples.tables.TableSet;
import java.util.List;

/** The tables of TPC-H. */
public final class TpchTables implements TableSet {
  /** The only instance. */
  public static final TableSet ALL = new TpchTables();

  private TpchTables() {}

  @Override
  public String id() {
    return "tpch";
  }

  @Override
  public String title() {
    return "TPC-H";
  }

  @Override
  public List<String> names() {
    return List.of(
        "lineitem", "orders", "partsupp", "customer", "part", "supplier", "nation", "region");
  }

  @Override
  public SideTask<Long> write(String table, double scale, String folder) {
    return new WriteTable(table, scale, folder);
  }

  /** Returns the number of files of a table: several for large tables, one for small ones. */
  static int parts(TpchTable<?> table, double scale) {
    return switch (table.getTableName()) {
      case "lineitem", "orders", "partsupp", "customer", "part" -> TableSet.parts(scale);
      default -> 1;
    };
  }
}
