package io.weft.tests.support;

/** Signals to processes, by number. */
public final class Signals {
  private Signals() {}

  /** Ends a process at once; none of its code runs any more. */
  public static void kill(long pid) {
    send("-KILL", pid);
  }

  /** Stops a process where it stands; it keeps its memory, files and connections. */
  public static void stop(long pid) {
    send("-STOP", pid);
  }

  /** Lets a stopped process go on. */
  public static void resume(long pid) {
    send("-CONT", pid);
  }

  private static void send(String signal, long pid) {
    ChildProcess.run("/bin/kill", signal, Long.toString(pid));
  }
}
