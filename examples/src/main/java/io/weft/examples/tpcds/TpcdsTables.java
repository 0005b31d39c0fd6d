package io.weft.examples.tpcds;

import io.trino.tpcds.Table;
import io.weft.examples.side.SideTask;
import io.weft.examples.tables.TableSet;
import java.util.Comparator;
import java.util.List;
import java.util.Set;

/** The 24 tables of TPC-DS that queries read. */
public final class TpcdsTables implements TableSet {
  /** The only instance. */
  public static final TableSet ALL = new TpcdsTables();

  /** Tables that grow in proportion to the scale. */
  private static final Set<Table> LARGE =
      Set.of(
          Table.STORE_SALES,
          Table.CATALOG_SALES,
          Table.WEB_SALES,
          Table.INVENTORY,
          Table.STORE_RETURNS,
          Table.CATALOG_RETURNS,
          Table.WEB_RETURNS);

  private TpcdsTables() {}

  @Override
  public String id() {
    return "tpcds";
  }

  @Override
  public String title() {
    return "TPC-DS";
  }

  @Override
  public List<String> names() {
    return Table.getBaseTables().stream()
        .filter(table -> table != Table.DBGEN_VERSION)
        .sorted(Comparator.comparing(table -> LARGE.contains(table) ? 0 : 1))
        .map(Table::getName)
        .toList();
  }

  @Override
  public SideTask<Long> write(String table, double scale, String folder) {
    return new WriteTable(table, scale, folder);
  }

  /** Returns the number of files of a table: several for large tables, one for small ones. */
  static int parts(Table table, double scale) {
    return LARGE.contains(table) ? TableSet.parts(scale) : 1;
  }
}
