package io.weft.suites;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

/** ScalaTest's report of a suite. */
final class SuiteReport {
  /**
   * The outcome of one test.
   *
   * @param failure the message and its location; empty if the test passed
   * @param ignored whether Spark itself ignores the test
   */
  record Outcome(String test, Optional<String> failure, boolean ignored) {}

  private SuiteReport() {}

  /** The tests in all reports of a folder, in order; empty if there is no report. */
  static List<Outcome> read(Path folder) throws IOException {
    List<Outcome> outcomes = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.filter(each -> each.toString().endsWith(".xml")).sorted().toList()) {
        readFile(file, outcomes);
      }
    }
    return outcomes;
  }

  private static void readFile(Path file, List<Outcome> outcomes) throws IOException {
    try {
      NodeList cases =
          DocumentBuilderFactory.newInstance()
              .newDocumentBuilder()
              .parse(file.toFile())
              .getElementsByTagName("testcase");
      for (int i = 0; i < cases.getLength(); i++) {
        outcomes.add(outcome((Element) cases.item(i)));
      }
    } catch (ParserConfigurationException | SAXException e) {
      throw new IOException(file + " is not a ScalaTest report", e);
    }
  }

  private static Outcome outcome(Element test) {
    NodeList failures = test.getElementsByTagName("failure");
    Optional<String> failure =
        failures.getLength() == 0
            ? Optional.empty()
            : Optional.of(
                ((Element) failures.item(0)).getAttribute("message")
                    + "\n"
                    + failures.item(0).getTextContent().strip());
    return new Outcome(
        test.getAttribute("name"), failure, test.getElementsByTagName("skipped").getLength() > 0);
  }
}
