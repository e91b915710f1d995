// Queries fetched in portions by pgJDBC. The argument is the size of a portion; the input has a
// line with what to do first, a change, what to ask at the end, and a line for each query.
// A portion of its rows is fetched, then the change is done, then the others are fetched; each
// three times, from a statement that the server has prepared.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

public class Portions {
    static void print(ResultSet rows) throws SQLException {
        StringBuilder line = new StringBuilder();
        for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) {
            line.append(i > 1 ? " " : "").append(rows.getString(i));
        }
        System.out.println(line);
    }

    public static void main(String[] args) throws Exception {
        int portion = Integer.parseInt(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String host = System.getenv("PGHOST");
        String url = "jdbc:postgresql://" + host + ":" + System.getenv("PGPORT") + "/postgres?prepareThreshold=1";
        try (Connection connection = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"));
             Statement other = connection.createStatement()) {
            System.err.println(connection.getMetaData().getDriverVersion());
            connection.setAutoCommit(false);
            other.execute(in.readLine());
            String change = in.readLine();
            String last = in.readLine();
            for (String query = in.readLine(); query != null; query = in.readLine()) {
                try (PreparedStatement statement = connection.prepareStatement(query)) {
                    statement.setFetchSize(portion);
                    for (int i = 0; i < 3; i++) {
                        other.execute("SAVEPOINT s");
                        try (ResultSet rows = statement.executeQuery()) {
                            for (int n = 0; rows.next(); n++) {
                                print(rows);
                                if (n == 0) {
                                    other.execute(change);
                                }
                            }
                        } catch (SQLException error) {
                            System.out.println(error.getMessage());
                        }
                        other.execute("ROLLBACK TO s");
                    }
                }
            }
            try (ResultSet rows = other.executeQuery(last)) {
                rows.next();
                print(rows);
            }
        }
    }
}
