from hotloop.cli.main import main

raise SystemExit(main())
