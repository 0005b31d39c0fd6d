package io.weft.shuffle.store;

import io.weft.memory.Bytes;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * The files of a dead executor that were removed.
 *
 * @param folder of the executor
 * @param bytes of its files, those on local disks included
 */
public record Leftover(Path folder, long bytes) {
  /**
   * Removes what dead executors of this user left. Folders of living executors and folders that a
   * living executor reads stay.
   *
   * @param root the folder of memory that the executors used, such as /dev/shm
   * @return what was removed
   * @throws IOException if the user's folder there is not safe to use
   */
  public static List<Leftover> sweep(Path root) throws IOException {
    Path user = root.resolve(HostRoot.userFolderName(HostRoot.userName()));
    Optional<String> objection = PrivateFolders.objection(user);
    if (objection.isPresent()) {
      throw new IOException(objection.get());
    }
    List<Leftover> removed = FolderSweep.user(user, Optional.empty());
    FolderSweep.removeIfEmpty(user);
    return removed;
  }

  /** A text such as "/dev/shm/weft-user/app-1/2-0123abcd (64.0 MiB)". */
  @Override
  public String toString() {
    return folder + " (" + Bytes.text(bytes) + ")";
  }
}
