package io.weft.shuffle.store;

import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Optional;

/** The main class of child processes. Each mode prints its result and waits for a line. */
final class ChildMain {
  private ChildMain() {}

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "executor" -> executor(arguments);
      case "closing" -> closing(arguments);
      case "lease" -> lease(arguments);
      case "reader" -> reader(arguments);
      case "driver" -> driver(arguments);
      case "churn" -> churn(arguments);
      case "checking" -> checking(arguments);
      case "shared" -> shared(arguments);
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  static HostRoot root(String path) {
    return new HostRoot(Path.of(path), true, Optional.empty());
  }

  /** Arguments: root, application, executor, disk folder. One segment in memory, one on disk. */
  private static void executor(String[] a) throws IOException {
    ExecutorFolder folder = ExecutorFolder.create(root(a[1]), a[2], a[3], false);
    SharedArena arena =
        SharedArena.open(
            new ArenaOptions(folder.path(), List.of(Path.of(a[4])), 4096, 4096, 4096, 0));
    arena.allocate(4096, Use.RETAINED);
    arena.allocate(4096, Use.RETAINED);
    say(folder.path());
    awaitLine();
    System.exit(0);
  }

  /** Arguments: root, application, executor. Closes its folder. */
  private static void closing(String[] a) throws IOException {
    try (ExecutorFolder folder = ExecutorFolder.create(root(a[1]), a[2], a[3], false)) {
      say(folder.path());
      awaitLine();
    }
  }

  /** Arguments: folder of the owner, shuffle. */
  private static void lease(String[] a) throws IOException {
    try (Lease lease = Lease.take(Path.of(a[1]), Integer.parseInt(a[2]), "9", "cafecafe")) {
      say(lease);
      awaitLine();
    }
  }

  /**
   * Arguments: root, application, executor, folder of the owner. Ends without closing its lease.
   */
  private static void reader(String[] a) throws IOException {
    ExecutorFolder folder = ExecutorFolder.create(root(a[1]), a[2], a[3], false);
    Lease lease = Lease.take(Path.of(a[4]), 1, a[3], folder.incarnation());
    say(lease);
    awaitLine();
    System.exit(0);
  }

  /** Arguments: folder of an executor, token that it announced. */
  private static void driver(String[] a) throws IOException {
    AnnouncedFolders.add("of another host", Path.of(a[1]), "");
    AnnouncedFolders.add(ExecutorFolder.currentBootId(), Path.of(a[1]), a[2]);
    say("knows it");
    awaitLine();
    AnnouncedFolders.sweep();
    say("has swept");
    awaitLine();
  }

  /** Arguments: root, application, executor, times. */
  private static void churn(String[] a) throws IOException {
    for (int i = 0; i < Integer.parseInt(a[4]); i++) {
      ExecutorFolder.create(root(a[1]), a[2], a[3], false).close();
    }
    say("done");
    awaitLine();
  }

  /** Argument: folder of a dead executor. Holds the lock as a sweep does during its check. */
  private static void checking(String[] a) throws IOException {
    try (LockedFile lock =
        LockedFile.share(Path.of(a[1]).resolve(FolderNames.ALIVE)).orElseThrow()) {
      say(lock);
      awaitLine();
    }
  }

  /** Argument: lease of a leased folder. Locks it as a process in another language does. */
  private static void shared(String[] a) throws IOException {
    try (FileChannel file = FileChannel.open(Path.of(a[1]), StandardOpenOption.READ);
        FileLock lock = file.lock(0, Long.MAX_VALUE, true)) {
      say(lock);
      awaitLine();
    }
  }

  private static void say(Object text) {
    System.out.println(text);
    System.out.flush();
  }

  private static void awaitLine() throws IOException {
    System.in.read();
  }
}
