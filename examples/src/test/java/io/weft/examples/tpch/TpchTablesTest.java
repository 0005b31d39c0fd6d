package io.weft.examples.tpch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.trino.tpch.TpchTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TpchTablesTest {
  @TempDir private Path folder;

  @Test
  void namesAreAllTables() {
    assertThat(TpchTables.ALL.names())
        .containsExactlyInAnyOrderElementsOf(
            TpchTable.getTables().stream().map(TpchTable::getTableName).toList());
  }

  @Test
  void aFolderIsReusedOnlyForItsScale() throws IOException {
    assertThat(TpchTables.ALL.complete(folder.resolve("absent"), 0.1)).isFalse();
    assertThat(TpchTables.ALL.complete(folder, 0.1)).isFalse();
    TpchTables.ALL.markComplete(folder, 0.1);
    assertThat(TpchTables.ALL.complete(folder, 0.1)).isTrue();
    assertThatIOException()
        .isThrownBy(() -> TpchTables.ALL.complete(folder, 1))
        .withMessageContaining("scale 0.1, not 1.0");
  }

  @Test
  void aFolderWithOtherFilesIsRejected() throws IOException {
    Files.writeString(folder.resolve("thesis.txt"), "mine");
    assertThatIOException()
        .isThrownBy(() -> TpchTables.ALL.complete(folder, 1))
        .withMessageContaining("choose another folder");
  }

  @Test
  void largeTablesHaveMoreFiles() {
    assertThat(TpchTables.parts(TpchTable.LINE_ITEM, 0.01)).isEqualTo(2);
    assertThat(TpchTables.parts(TpchTable.LINE_ITEM, 1)).isEqualTo(8);
    assertThat(TpchTables.parts(TpchTable.NATION, 100)).isEqualTo(1);
  }
}
