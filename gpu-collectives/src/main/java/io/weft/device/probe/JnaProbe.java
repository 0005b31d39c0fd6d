package io.weft.device.probe;

import java.net.URL;

/** Finds JNA without loading a class of it. */
final class JnaProbe {
  private static final String CLASS_FILE = "com/sun/jna/Native.class";

  private JnaProbe() {}

  static Finding library() {
    URL found = JnaProbe.class.getClassLoader().getResource(CLASS_FILE);
    if (found == null) {
      return Finding.no("net.java.dev.jna:jna is not on the class path, so no GPU can be used");
    }
    String place = found.toString();
    return Finding.yes(place.substring(0, place.length() - CLASS_FILE.length()));
  }
}
