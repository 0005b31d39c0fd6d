package io.weft.examples.tpcds;

import static org.assertj.core.api.Assertions.assertThat;

import io.trino.tpcds.Table;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

class TpcdsTablesTest {
  private static final double SCALE = 0.01;

  private static List<InternalRow> rows(Table table, int part, int parts) {
    List<InternalRow> rows = new ArrayList<>();
    Iterator<InternalRow> all = WriteTable.rows(table, SCALE, part, parts);
    all.forEachRemaining(rows::add);
    return rows;
  }

  @Test
  void thereAre24Tables() {
    assertThat(TpcdsTables.ALL.names())
        .hasSize(24)
        .contains("store_sales", "household_demographics")
        .doesNotContain("dbgen_version")
        .endsWith("web_site");
    assertThat(TpcdsTables.parts(Table.INVENTORY, 1)).isEqualTo(8);
    assertThat(TpcdsTables.parts(Table.REASON, 1)).isEqualTo(1);
  }

  @Test
  void theTypesAreThoseOfTheSpecification() {
    StructType schema = WriteTable.schema(Table.STORE_RETURNS);
    assertThat(schema.apply("sr_ticket_number").dataType()).isEqualTo(DataTypes.IntegerType);
    assertThat(schema.apply("sr_return_amt").dataType())
        .isEqualTo(DataTypes.createDecimalType(7, 2));
    assertThat(WriteTable.schema(Table.DATE_DIM).apply("d_date").dataType())
        .isEqualTo(DataTypes.DateType);
  }

  @Test
  void returnsBelongToSales() {
    StructType sales = WriteTable.schema(Table.STORE_SALES);
    StructType returns = WriteTable.schema(Table.STORE_RETURNS);
    List<InternalRow> sold = rows(Table.STORE_SALES, 1, 1);
    List<InternalRow> returned = rows(Table.STORE_RETURNS, 1, 1);
    int ticket = sales.fieldIndex("ss_ticket_number");
    int item = sales.fieldIndex("ss_item_sk");
    List<String> keys =
        sold.stream().map(row -> row.getInt(ticket) + "/" + row.getInt(item)).toList();
    int returnedTicket = returns.fieldIndex("sr_ticket_number");
    int returnedItem = returns.fieldIndex("sr_item_sk");
    assertThat(sold.size()).isGreaterThan(20_000);
    assertThat(returned.size()).isBetween(sold.size() / 20, sold.size() / 5);
    assertThat(keys)
        .containsAll(
            returned.stream()
                .limit(100)
                .map(row -> row.getInt(returnedTicket) + "/" + row.getInt(returnedItem))
                .toList());
  }

  @Test
  void allPartsTogetherAreTheWholeTable() {
    assertThat(rows(Table.ITEM, 1, 2).size() + rows(Table.ITEM, 2, 2).size())
        .isEqualTo(rows(Table.ITEM, 1, 1).size());
  }
}
